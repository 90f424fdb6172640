package cli

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"robotsgate/internal/config"
)

// Doctor checks that this shell's clients use a gate and trust its CA.
type Doctor struct {
	Configured
	Clients []string `arg:"" optional:"" name:"CLIENT" help:"Check only these: curl, wget, wget2, requests, scrapy, node, java, go."`
}

// Help is shown by --help.
func (*Doctor) Help() string {
	return "Every client that is found requests a page that only the gate has. No other host is contacted.\n" +
		"Exit status 0: no problem, 1: a problem, 2: an error.\n\n" +
		"Example:\n  robotsgate doctor\n  robotsgate doctor curl node"
}

// A finding is one line of the report, with what to do about it.
type finding struct {
	subject string
	verdict string
	text    string
	advice  []string
}

const (
	passed  = "ok"
	failed  = "no"
	unknown = "--" // does not fail the command
)

// A diagnosis has what is known of the gate and this shell.
type diagnosis struct {
	config    *config.Config
	dir       string
	gate      string // URL without a password; "" if none answers
	pem       []byte // the certificates that the gate serves
	authority *x509.Certificate
	getenv    func(string) string
	unset     bool // a variable of the shell is missing or wrong
	asked     map[string]answer
}

// Run prints the findings.
func (d *Doctor) Run(ctx context.Context, s Streams) error {
	chosen, err := choose(d.Clients)
	if err != nil {
		return err
	}
	c, err := d.load()
	if err != nil {
		return err
	}
	dir, err := config.DataDir(c)
	if err != nil {
		return err
	}
	// Clients run in process groups of their own, which a terminal's signals do not reach.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	e := &diagnosis{config: c, dir: dir, getenv: os.Getenv, asked: map[string]answer{}}
	findings := []finding{e.findGate(ctx)}
	if e.gate != "" {
		findings = append(findings, e.certificate())
	}
	variables, trust := e.proxyVariables(ctx), e.trustVariables()
	e.unset = variables.verdict == failed || trust.verdict == failed
	if variables.verdict == failed {
		trust.advice = nil // the same advice
	}
	findings = append(findings, variables, trust)
	if e.gate != "" {
		tried, err := e.try(ctx, chosen, len(d.Clients) > 0)
		if err != nil {
			return err
		}
		findings = append(findings, tried...)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return printFindings(s, findings)
}

// printFindings prints the findings in columns. The exit status is 1 if one has failed.
func printFindings(s Streams, findings []finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.subject))
	}
	var text strings.Builder
	status := 0
	for _, f := range findings {
		fmt.Fprintf(&text, "%-*s  %s  %s\n", width, f.subject, f.verdict, f.text)
		for _, line := range f.advice {
			fmt.Fprintf(&text, "%*s  %s\n", width+4, "", line)
		}
		if f.verdict == failed {
			status = 1
		}
	}
	if _, err := s.Out.Write([]byte(text.String())); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	if status != 0 {
		return Exit(status)
	}
	return nil
}

// try checks all clients at the same time.
func (e *diagnosis) try(ctx context.Context, chosen []program, named bool) ([]finding, error) {
	temp, err := os.MkdirTemp("", "robotsgate-doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	findings := make([]finding, len(chosen))
	var wg sync.WaitGroup
	for i, p := range chosen {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, clientTimeout)
			defer cancel()
			findings[i] = e.checkClient(ctx, p, temp)
		})
	}
	wg.Wait()
	return slices.DeleteFunc(findings, func(f finding) bool { return f.text == notFound && !named }), nil
}

// clientTimeout bounds the check of a client.
const clientTimeout = 10 * time.Second

const notFound = "is not on this machine"

// certificate checks the CA that the gate signs with.
func (e *diagnosis) certificate() finding {
	f := finding{subject: "CA", verdict: passed}
	file := e.caFile()
	f.text = fmt.Sprintf("%s, until %s", file, date(e.authority.NotAfter))
	data, err := os.ReadFile(file)
	onDisk := certificatesIn(data)
	switch {
	case time.Until(e.authority.NotAfter) <= 0:
		f.verdict, f.text = failed, "expired on "+date(e.authority.NotAfter)
		f.advice = []string{"robotsgate ca --renew, give clients the new certificate, then send the gate a SIGHUP or restart it"}
	case err != nil:
		f.verdict, f.text = unknown, fmt.Sprintf("%s/ca.pem, until %s; %s can't be read", e.gate, date(e.authority.NotAfter), file)
	case !slices.ContainsFunc(onDisk, e.authority.Equal) && e.gate != e.configured():
		f.verdict, f.text = unknown, fmt.Sprintf("%s/ca.pem, until %s; %s is another gate's", e.gate, date(e.authority.NotAfter), file)
	case !slices.ContainsFunc(onDisk, e.authority.Equal):
		f.verdict, f.text = failed, "the gate signs with another CA than that in "+file
		f.advice = []string{"name the gate's configuration with -c, or restart the gate"}
	case !onDisk[0].Equal(e.authority):
		f.text = fmt.Sprintf("%s holds a new one; the gate signs with the old one until a SIGHUP or a restart, at most until %s", file, date(e.authority.NotAfter))
	case time.Until(e.authority.NotAfter) < 30*24*time.Hour:
		f.verdict, f.text = failed, f.text+", which is soon"
		f.advice = []string{"robotsgate ca --renew, give clients the new certificate, then send the gate a SIGHUP or restart it"}
	}
	return f
}

// caFile returns the CA's file by the configuration.
func (e *diagnosis) caFile() string {
	if e.config.HTTPS.CACert != "" {
		return e.config.HTTPS.CACert
	}
	return filepath.Join(e.dir, "ca.pem")
}

// onDisk returns the contents of this file, nil if it can't be read.
func (e *diagnosis) onDisk() []byte {
	data, _ := os.ReadFile(e.caFile())
	return data
}

func certificatesIn(data []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// holds reports whether data has the CA that the gate signs with.
func (e *diagnosis) holds(data []byte) bool {
	return slices.ContainsFunc(certificatesIn(data), e.authority.Equal)
}

// files returns the files that clients need, and the commands to get them if they are not
// on this machine.
func (e *diagnosis) files() (f trust, get []string) {
	f = trust{ca: filepath.Join(e.dir, "ca.pem"), bundle: filepath.Join(e.dir, "bundle.pem"), wgetrc: filepath.Join(e.dir, "wgetrc")}
	if data, err := os.ReadFile(f.bundle); err == nil && e.holds(data) {
		return f, nil
	}
	return trust{ca: "$PWD/ca.pem", bundle: "$PWD/bundle.pem"}, e.download()
}

// download returns the commands that download the CA from the gate.
func (e *diagnosis) download() (lines []string) {
	for _, name := range []string{"ca.pem", "bundle.pem"} {
		lines = append(lines, "curl --noproxy '*' -o "+name+" "+e.gate+"/"+name)
	}
	return lines
}

// isPEM reports whether answer has the gate's certificates.
func (e *diagnosis) isPEM(answer []byte) bool {
	return bytes.Contains(bytes.ReplaceAll(answer, []byte("\r"), nil), bytes.TrimSpace(e.pem))
}
