package audit

import (
	"fmt"
	"os"
	"runtime"

	"robotsgate/internal/evidence"
	"robotsgate/internal/field"
	"robotsgate/internal/keyfile"
)

// Config says which entries are written, where, and who vouches for them.
type Config struct {
	File        string `yaml:"audit" restart:"yes" doc:"a file, such as audit.jsonl" path:"yes"`                       // is rotated at 100 MiB; "": none, "-": standard output
	Keep        int    `yaml:"audit_keep" restart:"yes" doc:"a whole number, 0 or more, such as 30"`                   // number of rotated files
	Name        string `yaml:"audit_name" restart:"yes" doc:"a name without spaces, such as crawl.example.com/gate-1"` // "": made of the gate's id
	KeyFile     string `yaml:"audit_key_file" restart:"yes" doc:"a PEM file, such as audit-key.pem" path:"yes"`        // "": one in data_dir; see [Config.Key]
	RedactQuery bool   `yaml:"redact_query" restart:"yes"`                                                             // query values become *
	Required    bool   `yaml:"audit_required" restart:"yes"`                                                           // the gate serves nothing while entries can't be written: see [Log.Err]

	key *keyfile.Key // in KeyFile
}

// Default returns a configuration without a log.
func Default() Config { return Config{Keep: 30} }

// Key returns the key that signs the log's checkpoints, which Check has loaded; nil: it is one in data_dir.
func (c Config) Key() *keyfile.Key { return c.key }

// Check reports mistakes, and loads the key.
func (c *Config) Check(m *field.Mistakes) {
	m.Require(!c.Required || c.File != "", "audit_required", "true needs log.audit: without a file nothing could be served")
	if c.Name != "" {
		m.Refuse("audit_name", evidence.CheckName(c.Name))
	}
	if c.KeyFile != "" {
		var err error
		c.key, err = loadKey(c.KeyFile)
		m.Refuse("audit_key_file", err)
	}
}

// loadKey loads the key of the audit log, which others must not be able to read.
func loadKey(file string) (*keyfile.Key, error) {
	key, err := keyfile.Load(file)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(file); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o027 != 0 {
		return nil, fmt.Errorf("%s: other users may read or change it (mode %04o): chmod 600 %s", file, info.Mode().Perm(), file)
	}
	return key, nil
}
