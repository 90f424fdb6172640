package cli

import (
	"errors"
	"fmt"

	"robotsgate/internal/ca"
)

// CA prints the certificate that clients must trust.
type CA struct {
	Configured
	Bundle bool `help:"Print the system's roots and the CA together."`
}

// Help is shown by --help.
func (*CA) Help() string {
	return "Example:\n  robotsgate ca > ca.pem\n  curl --cacert ca.pem -x http://127.0.0.1:9309 https://example.com/"
}

// Run prints it as PEM.
func (c *CA) Run(s Streams) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	authority, _, err := authorityOf(cfg)
	if err != nil {
		return err
	}
	for _, w := range authority.Warnings() {
		s.warn("%s", w)
	}
	pem := authority.PEM()
	if c.Bundle {
		roots, _, err := ca.SystemRoots()
		if errors.Is(err, ca.ErrNoRoots) {
			s.warn("%v: the bundle holds the gate's CA alone", err)
		} else if err != nil {
			return err
		}
		pem = authority.Bundle(roots)
	}
	if _, err := s.Out.Write(pem); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
