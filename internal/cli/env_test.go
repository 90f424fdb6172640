package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/gate"
	"robotsgate/policy"
)

func TestEnvCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, secret := file("it's.yaml", ""), file("secret.yaml", `password_bcrypt: "${HASH}"`)
	for _, c := range []struct {
		name, file string
		change     func(*gate.Config)
		want       string // empty: the variables themselves
	}{
		{"no file", "", func(*gate.Config) {}, `eval "$(robotsgate env)"`},
		{"a file", plain, func(*gate.Config) {}, `eval "$(robotsgate env -c '` + dir + `/it'\''s.yaml')"`},
		{"a folder of its own", "", func(c *gate.Config) { c.DataDir = dir }, `eval "$(robotsgate env)"`},
		{"any port", "", func(c *gate.Config) { c.Listen = "127.0.0.1:0" }, ""},
		{"a folder below this one", "", func(c *gate.Config) { c.DataDir = "data" }, ""},
		{"a CA below this one", "", func(c *gate.Config) { c.HTTPS.CACert = "ca.pem" }, ""},
		{"a login", "", func(c *gate.Config) {
			c.UnknownClients, c.Crawlers = gate.RefuseClients, []gate.Crawler{{Crawler: policy.Crawler{Name: "news", Login: policy.Login{User: "news", Hash: "hash"}}}}
		}, `eval "$(robotsgate env --login USER)"`},
		{"a secret that the other shell may not have", secret, func(*gate.Config) {}, ""},
		{"a pipe, which is read once", os.DevNull, func(*gate.Config) {}, ""},
		{"a file that is gone", filepath.Join(dir, "gone"), func(*gate.Config) {}, ""},
	} {
		settings := gate.DefaultConfig()
		c.change(settings)
		if got := envCommand("robotsgate", c.file, settings); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestAdviseDownload: a user that may not read the CA's files learns where to download it.
func TestAdviseDownload(t *testing.T) {
	forbidden, damaged := fmt.Errorf("ca-key.pem: %w", fs.ErrPermission), errors.New("ca.pem: damaged")
	if err := adviseDownload(forbidden, "http://gate:9309"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "http://gate:9309/ca.pem") {
		t.Error(err)
	}
	if err := adviseDownload(damaged, "http://gate:9309"); err != damaged {
		t.Error(err)
	}
	if err := adviseDownload(nil, "http://gate:9309"); err != nil {
		t.Error(err)
	}
}
