package config

import (
	"crypto/sha256"
	"encoding/hex"
)

// FleetHash returns a hash of what should be equal in all gates of a fleet. It leaves out the
// addresses, names of files, limits and logs of one machine, and secrets.
func (c *Config) FleetHash() (string, error) {
	d, own := *c, Default()
	d.Listen, d.ListenTransparent, d.DataDir, d.Admin, d.Log, d.Limits = own.Listen, own.ListenTransparent, own.DataDir, own.Admin, own.Log, own.Limits
	d.HTTPS.CACert, d.HTTPS.CAKey, d.Egress.CAFile = "", "", ""
	d.Fleet.Address, d.Fleet.KeyFile, d.Fleet.CAFile = "", "", ""
	text, err := d.Effective()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
