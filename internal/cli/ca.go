package cli

import (
	"errors"
	"fmt"

	"robotsgate/internal/ca"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// CA prints the certificate that clients must trust.
type CA struct {
	Configured
	Bundle bool `help:"Print the system's roots and the CA together."`
	Renew  bool `help:"Make a new CA first. Its files also hold the old one until that expires; a running gate uses the new one after a SIGHUP or a restart."`
}

// Run prints it as PEM.
func (c *CA) Run(s console.Streams) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if c.Renew {
		if err := renew(cfg, s); err != nil {
			return err
		}
	}
	authority, _, err := authorityOf(cfg)
	if err != nil {
		return err
	}
	for _, w := range authority.Warnings() {
		s.Warn("%s", w)
	}
	pem := authority.PEM()
	if c.Bundle {
		roots, _, err := ca.SystemRoots()
		if err != nil {
			s.Warn("%v: the bundle holds the gate's CA alone", err)
		}
		pem = authority.Bundle(roots)
	}
	_, err = s.Out.Write(pem)
	return err
}

// renew makes a new CA, and prints what to do next.
func renew(cfg *gate.Config, s console.Streams) error {
	if cfg.HTTPS.CACert != "" {
		return fmt.Errorf("--renew: https.ca_cert is your own CA: replace %s and https.ca_key by what its issuer gives you, and restart the gate", cfg.HTTPS.CACert)
	}
	dir, err := gate.DataDir(cfg)
	if err != nil {
		return err
	}
	a, err := ca.Renew(dir)
	if err != nil {
		return err
	}
	files, err := a.WriteClientFiles(dir)
	if err != nil && !errors.Is(err, ca.ErrNoRoots) {
		return err
	}
	s.Note("the new CA in %s holds until %s", files.Cert, console.Date(a.Certificate().NotAfter))
	if old := a.Former(); len(old) > 0 {
		s.Note("the old one stays trusted beside it, there and in %s, until %s", files.Bundle, console.Date(old[0].NotAfter))
		s.Note("a gate that is running signs with the old one until a SIGHUP or a restart: give clients the new files first")
	}
	return nil
}
