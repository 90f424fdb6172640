package config

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"

	"robotsgate/internal/evidence"
	"robotsgate/internal/field"
	"robotsgate/internal/keyfile"
)

// checkEvidence checks what is said of the transparency log, and loads its key.
func (c *Config) checkEvidence() {
	s, l := &c.source, &c.Log
	if l.AuditName != "" {
		s.Refuse("log.audit_name", evidence.CheckName(l.AuditName))
	}
	if l.AuditKeyFile != "" {
		var err error
		l.auditKey, err = loadAuditKey(l.AuditKeyFile)
		s.Refuse("log.audit_key_file", err)
	}
	names := map[string]bool{}
	for i, w := range l.Witnesses {
		path := fmt.Sprintf("log.witnesses[%d]", i)
		u, err := url.Parse(w.URL)
		s.Require(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "", path+".url",
			"expected the submission prefix of a witness, such as https://witness.example/, got %q", field.Cut(w.URL))
		s.Require(err != nil || u.User == nil, path+".url", "a witness takes no login: remove USER:PASSWORD@ from its URL")
		_, err = evidence.ParseKeys(nil, []string{w.Key})
		s.Refuse(path+".key", err)
		name, _, _ := strings.Cut(w.Key, "+")
		s.Require(err != nil || !names[name], path+".key", "%s is there twice: the metrics and the status page tell witnesses apart by their names", name)
		names[name] = true
	}
	s.Require(len(l.Witnesses) == 0 || l.Audit != "", "log.witnesses", "without log.audit there is no log to cosign: set log.audit, too")
}

// oldKeyBytes is the least length of the secret that versions before had in the key file.
const oldKeyBytes = 32

// loadAuditKey loads the key of the audit log, which others must not be able to read.
func loadAuditKey(file string) (*keyfile.Key, error) {
	key, err := keyfile.Load(file)
	if err != nil {
		if text, errRead := os.ReadFile(file); errRead == nil && len(text) >= oldKeyBytes && !strings.Contains(string(text), "-----BEGIN") {
			return nil, fmt.Errorf("%w. In versions before, %d or more secret bytes stood here; now it is the Ed25519 key that signs the checkpoints of the log", err, oldKeyBytes)
		}
		return nil, err
	}
	if info, err := os.Stat(file); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o027 != 0 {
		return nil, fmt.Errorf("%s: other users may read or change it (mode %04o): chmod 600 %s", file, info.Mode().Perm(), file)
	}
	return key, nil
}
