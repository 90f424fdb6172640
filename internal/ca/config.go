package ca

import (
	"errors"
	"fmt"
	"io/fs"

	"robotsgate/internal/field"
)

// Config names the files of a CA of the operator's own. Without them, one is made on first start.
type Config struct {
	CACert string `yaml:"ca_cert" restart:"yes" doc:"a PEM file, such as ca.pem" path:"yes"`
	CAKey  string `yaml:"ca_key" restart:"yes" doc:"a PEM file, such as ca-key.pem" path:"yes"`
}

// Check reports a file without the other, and files that can't be read. [Load] checks that the key belongs to the
// certificate.
func (c Config) Check(m *field.Mistakes) {
	const both = "%s is missing: a CA of your own needs both"
	m.Require(c.CACert == "" || c.CAKey != "", "ca_cert", both, "https.ca_key")
	m.Require(c.CAKey == "" || c.CACert != "", "ca_key", both, "https.ca_cert")
	for key, file := range map[string]string{"ca_cert": c.CACert, "ca_key": c.CAKey} {
		if file == "" {
			continue
		}
		_, err := field.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; without ca_cert and ca_key the gate makes a CA of its own in data_dir", err)
		}
		m.Refuse(key, err)
	}
}
