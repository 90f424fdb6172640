package gate

import (
	"errors"
	"fmt"
	"io/fs"

	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// ReadSigner returns the signer of the audit log of a configuration.
func ReadSigner(c *Config) (*evidence.Signer, error) {
	dir, err := DataDir(c)
	if err != nil {
		return nil, err
	}
	signer, err := LogSigner(c, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data_dir %s has no key of an audit log yet: the gate makes it at its first start with log.audit; or set log.audit_key_file and log.audit_name", dir)
	}
	return signer, err
}

// OpenSnapshots opens the snapshots in the data_dir of a configuration. An error says what to do about the file of -c.
func OpenSnapshots(c *Config, s console.Streams) (archive *store.Reader, dir string, err error) {
	if dir, err = DataDir(c); err != nil {
		return nil, "", err
	}
	archive, err = store.Read(dir, func(err error) { s.Status(fmt.Errorf("a stored snapshot can't be read: %w", err)) })
	if errors.Is(err, fs.ErrNotExist) {
		hint := "name the gate's configuration with -c"
		if c.File() != "" {
			hint = c.File() + " is another gate's configuration, or its gate has not run yet"
		}
		err = fmt.Errorf("%s has no snapshots: %s", dir, hint)
	}
	return archive, dir, err
}

// Evidence is the evidence in a data_dir.
type Evidence struct {
	*store.Reader
	Dir string
}

// Configuration returns the text of a kept configuration.
func (e Evidence) Configuration(digest string) ([]byte, error) {
	return store.ReadConfiguration(e.Dir, digest)
}

// KeptSettings returns the settings in the text of a kept configuration.
func KeptSettings(text []byte) (*policy.Config, error) {
	c, err := KeptConfig(text)
	if err != nil {
		return nil, err
	}
	p := EngineConfig(c, nil, nil, nil, nil)
	return &p, nil
}
