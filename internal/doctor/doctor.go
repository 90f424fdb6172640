// Package doctor checks that a shell's clients use a gate and trust its CA, and what a gate depends on: its fleet, the
// directories of its keys, and the state of its audit log.
package doctor

// Where to change what.
//
//	what is checked of a directory of keys:
//		signing.go
//	what is recommended for a client:
//		clients.go and browsers.go
//	what doctor --confine prints:
//		confine.go

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/escape"
	"robotsgate/internal/gate"
)

// AttemptCommand is a command for processes of doctor --confine. It is in no help.
const AttemptCommand = "confine-attempt"

// A finding is one line of the report, with what to do about it.
type finding struct {
	subject string
	verdict verdict
	text    string
	advice  []string
}

// A verdict is the result of one check, as the report shows it.
type verdict string

const (
	passed  verdict = "ok"
	failed  verdict = "no"
	unknown verdict = "--" // does not fail the command
)

func fault(subject, text string, advice ...string) finding {
	return finding{subject, failed, text, advice}
}

// A diagnosis has what is known of the gate and this shell.
type diagnosis struct {
	config *gate.Config
	dir    string
	asked  map[string]gateAnswer // what answers at the proxies of the variables and of the configuration
	gate   gateAnswer            // the first gate of these; its url is "" if there is none
	files  ca.ClientFiles        // what clients need to trust the gate
	get    []string              // the commands that download files; none if they are on this machine
	unset  bool                  // a variable of the shell is missing or wrong
}

// Run checks this shell and the gate of a configuration, and prints the findings. Of clients it checks only those named;
// without a name all except browsers.
func Run(ctx context.Context, s console.Streams, c *gate.Config, clients []string, json bool) error {
	chosen, err := choose(clients)
	if err != nil {
		return err
	}
	dir, err := gate.DataDir(c)
	if err != nil {
		return err
	}
	// Clients run in process groups of their own, which a terminal's signals do not reach.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	e := &diagnosis{config: c, dir: dir, asked: map[string]gateAnswer{}}
	findings := []finding{e.findGate(ctx)}
	if e.gate.url != "" {
		findings = append(findings, e.certificate())
	}
	variables, advice := e.proxyVariables(), e.env()
	if variables.verdict == failed {
		advice = nil // it is there already
	}
	trust := e.trustVariables(advice)
	e.unset = variables.verdict == failed || trust.verdict == failed
	findings = append(findings, variables, trust)
	if e.gate.url != "" {
		tried, err := e.try(ctx, chosen, len(clients) > 0)
		if err != nil {
			return err
		}
		findings = append(findings, tried...)
	}
	for _, w := range c.Warnings() {
		findings = append(findings, finding{"configuration", unknown, escape.Printable(w.String()), nil})
	}
	findings = append(findings, checkFleet(ctx, c)...)
	findings = append(findings, checkSigning(ctx, c)...)
	findings = append(findings, checkEvidence(ctx, c)...)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if json {
		return encodeFindings(s, findings)
	}
	if err := printFindings(s, findings, nil); err != nil {
		return err
	}
	return statusOf(findings)
}

// encodeFindings prints the findings as JSON.
func encodeFindings(s console.Streams, findings []finding) error {
	type check struct {
		Subject string   `json:"subject"`
		Result  string   `json:"result"` // ok, failed or unknown
		Text    string   `json:"text"`
		Advice  []string `json:"advice,omitempty"`
	}
	checks := []check{}
	for _, f := range findings {
		result := map[verdict]string{passed: "ok", failed: "failed", unknown: "unknown"}[f.verdict]
		checks = append(checks, check{f.subject, result, f.text, f.advice})
	}
	if err := console.JSON(s.Out, map[string]any{"ok": !anyFailed(findings), "checks": checks}); err != nil {
		return err
	}
	return statusOf(findings)
}

// printFindings prints the findings in columns, each verdict as it is or as words has it.
func printFindings(s console.Streams, findings []finding, words map[verdict]string) error {
	out := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(out, "%s\t%s\t%s\n", f.subject, cmp.Or(words[f.verdict], string(f.verdict)), f.text)
		for _, line := range f.advice {
			fmt.Fprintf(out, "\t\t%s\n", line)
		}
	}
	return out.Flush()
}

func anyFailed(findings []finding) bool {
	return slices.ContainsFunc(findings, func(f finding) bool { return f.verdict == failed })
}

func statusOf(findings []finding) error {
	if anyFailed(findings) {
		return console.Exit(1)
	}
	return nil
}

// named returns a command with the -c that has named its configuration, if one has.
func named(c *gate.Config, command string) string {
	if c.File() == "" {
		return command
	}
	return command + " -c " + clientenv.QuoteShell(c.File())
}

// certFile returns the file with the CA of the configuration.
func (e *diagnosis) certFile() string {
	if e.config.HTTPS.CACert != "" {
		return e.config.HTTPS.CACert
	}
	return filepath.Join(e.dir, "ca.pem")
}

// certificate checks the CA that the gate signs with.
func (e *diagnosis) certificate() finding {
	file := e.certFile()
	data, err := os.ReadFile(file)
	ends, left := console.Date(e.gate.signer.NotAfter), time.Until(e.gate.signer.NotAfter)
	renew := named(e.config, "robotsgate ca --renew") + ", give clients the new certificate, then send the gate a SIGHUP or restart it"
	switch {
	case left <= 0:
		return fault("CA", "expired on "+ends, renew)
	case err != nil:
		return finding{"CA", unknown, fmt.Sprintf("%s/ca.pem, until %s; %s can't be read", e.gate.url, ends, file), nil}
	case !e.holds(data) && e.gate.url != e.configured():
		return finding{"CA", unknown, fmt.Sprintf("%s/ca.pem, until %s; %s is another gate's", e.gate.url, ends, file), nil}
	case !e.holds(data):
		return fault("CA", "the gate signs with another CA than that in "+file, "name the gate's configuration with -c, or restart the gate")
	case !certificatesIn(data)[0].Equal(e.gate.signer):
		return finding{"CA", passed, fmt.Sprintf("%s holds a new one; the gate signs with the old one until a SIGHUP or a restart, at most until %s", file, ends), nil}
	case left < 30*24*time.Hour:
		return fault("CA", fmt.Sprintf("%s, until %s, which is soon", file, ends), renew)
	}
	return finding{"CA", passed, fmt.Sprintf("%s, until %s", file, ends), nil}
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
	return e.gate.url != "" && slices.ContainsFunc(certificatesIn(data), e.gate.signer.Equal)
}
