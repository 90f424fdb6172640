package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// Env prints the variables by which clients find the gate and trust its CA.
type Env struct {
	Configured
	Login string `placeholder:"USER" help:"User of the login; the password is asked for, or the line on standard input."`
	Shell string `enum:"sh,bash,zsh,fish,powershell" default:"sh" help:"Syntax: sh (also called bash or zsh), fish or powershell."`
}

// Run prints the variables.
func (e *Env) Run(ctx context.Context, s console.Streams) error {
	c, err := e.load()
	if err != nil {
		return err
	}
	proxy := "http://" + dialable(c.Listen)
	authority, dir, err := authorityOf(c)
	if err != nil {
		return err
	}
	if os.Getenv("ROBOTSGATE_ADMIN") != "" {
		s.Warn("this shell uses a gate of robotsgate run or demo; these lines lead to another, at %s", proxy)
	}
	if otherGate(ctx, proxy, authority) {
		s.Warn("the gate at %s has another CA than %s: name its configuration with -c, or get its certificate from %[1]s/ca.pem", proxy, authority.CertFile())
	}
	files, err := authority.WriteClientFiles(dir)
	if errors.Is(err, ca.ErrNoRoots) {
		s.Warn("%v: the bundle holds the gate's CA alone", err)
	} else if err != nil {
		return err
	}
	if proxy, err = e.proxyURL(s, c); err != nil {
		return err
	}
	format, quote := "export %s=%s", quoteShell
	switch e.Shell {
	case "fish":
		format, quote = "set -gx %s %s", quoteFish
	case "powershell":
		format, quote = "$env:%s = %s", quotePowerShell
	}
	_, err = fmt.Fprintln(s.Out, strings.Join(clientVars(proxy, files).lines(format, quote), "\n"))
	return err
}

// otherGate reports whether a gate with another CA than a answers at this URL. It takes
// at most a second, since the start of a shell may wait for it.
func otherGate(ctx context.Context, proxy string, a *ca.Authority) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	gate, err := certificateOf(ctx, proxy)
	return err == nil && !slices.ContainsFunc(certificatesIn(gate.pem), a.Certificate().Equal)
}

// authorityOf opens the CA of a configuration. It returns the data_dir, too.
func authorityOf(c *gate.Config) (*ca.Authority, string, error) {
	dir, err := gate.DataDir(c)
	if err != nil {
		return nil, "", err
	}
	a, err := gate.OpenCA(c, dir)
	return a, dir, adviseDownload(err, "http://"+dialable(c.Listen))
}

// adviseDownload adds where to download the certificate to an error of a user that may not
// read the CA's files.
func adviseDownload(err error, gate string) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; the gate itself serves the certificate, at %s/ca.pem", err, gate)
	}
	return err
}

// envCommand returns a line for a shell that sets the variables of a gate with the
// configuration c of this file. It is empty if robotsgate env could print other variables in
// another shell than the gate does.
func envCommand(program, file string, c *gate.Config) string {
	relative := func(path string) bool { return path != "" && !filepath.IsAbs(path) }
	if strings.HasSuffix(c.Listen, ":0") || relative(c.DataDir) || relative(c.HTTPS.CACert) {
		return ""
	}
	command := quoteShell(program) + " env"
	if file != "" {
		full, err := filepath.Abs(file)
		if info, serr := os.Stat(full); err != nil || serr != nil || !info.Mode().IsRegular() {
			return "" // a pipe can't be read again
		}
		if text, err := os.ReadFile(full); err != nil || strings.Contains(string(text), "${") {
			return ""
		}
		command += " -c " + quoteShell(full)
	}
	if gate.Crawlers(c).NeedLogin() {
		command += " --login USER"
	}
	return `eval "$(` + command + `)"`
}

// A variable is an environment variable for clients.
type variable struct{ name, value string }

type variables []variable

// clientVars returns the variables that clients need. Many clients read one case of a name
// only. Clients that read a bundle use it in place of their own roots.
func clientVars(proxy string, files ca.ClientFiles) (all variables) {
	set := func(value string, names ...string) {
		for _, name := range names {
			all = append(all, variable{name, value})
		}
	}
	set(proxy, "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
	set("localhost,127.0.0.1,::1", "no_proxy", "NO_PROXY")
	set("1", "NODE_USE_ENV_PROXY")
	set(files.Cert, "NODE_EXTRA_CA_CERTS")
	set(files.Bundle, "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO",
		"PIP_CERT", "HTTPLIB2_CA_CERTS", "PERL_LWP_SSL_CA_FILE",
		"npm_config_cafile") // takes precedence over the cafile of an .npmrc, which makes npm ignore NODE_EXTRA_CA_CERTS
	set(files.Wgetrc, "SYSTEM_WGETRC", "SYSTEM_WGET2RC") // ~/.wgetrc stays in force
	return all
}

// lines returns a line for each variable: format with its name, and its value as quote returns it.
func (v variables) lines(format string, quote func(string) string) (all []string) {
	for _, x := range v {
		all = append(all, fmt.Sprintf(format, x.name, quote(x.value)))
	}
	return all
}

// environ returns the variables for the environment of a process.
func (v variables) environ() []string {
	return v.lines("%s=%s", func(value string) string { return value })
}

// line returns one line for a POSIX shell that sets all variables.
func (v variables) line() string {
	return "export " + strings.Join(v.lines("%s=%s", quoteShell), " ")
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+="

func quoteShell(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func quoteFish(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// quotePowerShell doubles every character that PowerShell takes for a single quote, which
// includes typographic quotes.
func quotePowerShell(s string) string {
	double := strings.NewReplacer("'", "''", "\u2018", "\u2018\u2018", "\u2019", "\u2019\u2019", "\u201a", "\u201a\u201a", "\u201b", "\u201b\u201b")
	return "'" + double.Replace(s) + "'"
}

// dialable returns the address to connect to for an address to listen on.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
