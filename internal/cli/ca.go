package cli

import (
	"errors"
	"fmt"

	"robotsgate/internal/ca"
	"robotsgate/internal/config"
)

// CA prints the certificate that clients must trust.
type CA struct {
	Configured
	Bundle bool `help:"Print the system's roots and the CA together."`
	Renew  bool `help:"Make a new CA first. Clients must then trust the new one, and a running gate be started again."`
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
	if c.Renew {
		if err := renew(cfg); err != nil {
			return err
		}
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

func renew(cfg *config.Config) error {
	if cfg.HTTPS.CACert != "" {
		return fmt.Errorf("--renew: https.ca_cert is your own CA; replace %s and https.ca_key yourself", cfg.HTTPS.CACert)
	}
	dir, err := config.DataDir(cfg)
	if err != nil {
		return err
	}
	_, err = ca.Renew(dir)
	return err
}
