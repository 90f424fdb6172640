package gate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
	"robotsgate/internal/keyfile"
)

// LogSigner returns the signer of the audit log of the gate that owns dir, its data_dir. The error is fs.ErrNotExist
// if the gate has not made what the configuration leaves out: the key, or the id that the name is made of.
func LogSigner(c *Config, dir string) (*evidence.Signer, error) {
	key := c.Log.Audit.Key()
	if key == nil {
		path := filepath.Join(dir, evidence.KeyFile)
		if _, err := os.Lstat(path); err != nil {
			return nil, err // keyfile.Load would advise to make a key
		}
		var err error
		if key, err = keyfile.Load(path); err != nil {
			return nil, err
		}
	}
	name := c.Log.Audit.Name
	if name == "" {
		id, err := ReadID(dir)
		if err != nil {
			return nil, err
		}
		name = logName(id)
	}
	return evidence.NewSigner(name, key)
}

func logName(id string) string { return "robotsgate/" + id }

// openAudit opens the audit log.
func (g *Gate) openAudit(dir string, out io.Writer) (err error) {
	l := g.config.Log.Audit
	if l.File == "" {
		return nil
	}
	o := audit.Options{Config: l}
	o.Evidence = evidence.Options{Name: l.Name, Gate: g.id, Key: l.Key()}
	e := &o.Evidence
	if e.Name == "" {
		e.Name = logName(g.ownerID(dir))
	}
	if g.owner() {
		e.Dir = dir
	}
	if e.Key == nil {
		if e.Key, err = ownKey(filepath.Join(dir, evidence.KeyFile)); err != nil {
			return fmt.Errorf("the key of the audit log: %w", err)
		}
	}
	if g.audit, err = audit.Open(o, out, g.log); err != nil {
		return fmt.Errorf("log.audit: %w; check the path and its permissions", err)
	}
	return nil
}

// evidence returns what reads the state of the audit log; nil: there is none.
func (g *Gate) evidence() func() audit.Status {
	if g.audit == nil {
		return nil
	}
	return g.audit.Status
}

// ownerID returns the id of the gate that owns the folder.
func (g *Gate) ownerID(dir string) string {
	if id, err := ReadID(dir); err == nil && !g.owner() {
		return id
	}
	return g.id
}

// ownKey returns the key in a file of data_dir, and makes it at the first start.
func ownKey(path string) (*keyfile.Key, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return keyfile.Load(path)
	}
	// Another gate may start at the same time, and must not read half a key.
	part := path + "." + newID()
	key, err := keyfile.Create(part)
	if err != nil {
		return nil, err
	}
	defer os.Remove(part)
	if err := os.Link(part, path); errors.Is(err, fs.ErrExist) {
		return keyfile.Load(path)
	} else if err != nil {
		return nil, err
	}
	return key, nil
}
