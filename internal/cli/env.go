package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"robotsgate/internal/ca"
	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// Env prints the variables by which clients find the gate and trust its CA.
type Env struct {
	Configured
	Shell string `enum:"sh,bash,zsh,fish,powershell" default:"sh" help:"Syntax: sh (also called bash or zsh), fish or powershell."`
}

// Run prints the variables.
func (e *Env) Run(s console.Streams) error {
	c, err := e.load()
	if err != nil {
		return err
	}
	authority, dir, err := authorityOf(c)
	if err != nil {
		return err
	}
	files, err := authority.WriteClientFiles(dir)
	if errors.Is(err, ca.ErrNoRoots) {
		s.Warn("%v: the bundle holds the gate's CA alone", err)
	} else if err != nil {
		return err
	}
	proxy := proxyURL(clientenv.Dialable(c.Listen), c)
	format, quote := "export %s=%s", clientenv.QuoteShell
	switch e.Shell {
	case "fish":
		format, quote = "set -gx %s %s", clientenv.QuoteFish
	case "powershell":
		format, quote = "$env:%s = %s", clientenv.QuotePowerShell
	}
	_, err = fmt.Fprintln(s.Out, strings.Join(clientenv.For(proxy, files).Lines(format, quote), "\n"))
	return err
}

// authorityOf opens the CA of a configuration. It returns the data_dir, too.
func authorityOf(c *gate.Config) (*ca.Authority, string, error) {
	dir, err := gate.DataDir(c)
	if err != nil {
		return nil, "", err
	}
	a, err := gate.OpenCA(c, dir)
	return a, dir, adviseDownload(err, "http://"+clientenv.Dialable(c.Listen))
}

// adviseDownload adds where to download the certificate to an error of a user that may not
// read the CA's files.
func adviseDownload(err error, gate string) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; the gate itself serves the certificate, at %s/ca.pem", err, gate)
	}
	return err
}

// proxyURL returns the URL of the gate for its clients, with a placeholder if each of them needs a
// login.
func proxyURL(address string, c *gate.Config) string {
	if gate.Crawlers(c).NeedLogin() {
		return clientenv.WithPlaceholder("http://" + address)
	}
	return "http://" + address
}
