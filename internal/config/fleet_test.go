package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStoreAddress(t *testing.T) {
	for _, c := range []struct{ text, shown, mistake string }{
		{"", "", ""},
		{"redis://127.0.0.1:6379", "redis://127.0.0.1:6379", ""},
		{"rediss://valkey.lan", "rediss://valkey.lan", ""},
		{"redis://gate:hunter2@valkey.lan:6379", "redis://xxxxx:xxxxx@valkey.lan:6379", ""},
		{"redis://:hunter2@valkey.lan", "redis://xxxxx:xxxxx@valkey.lan", ""},
		{"redis://gate:hunter2%2F%40@a.lan:1,b_2.lan,[2001:db8::1]:3?sentinel=my-main", "redis://xxxxx:xxxxx@a.lan:1,b_2.lan,[2001:db8::1]:3?sentinel=my-main", ""},
		{"redis://[::1]", "redis://[::1]", ""},
		{"redis://a.lan/", "redis://a.lan/", ""},
		{"redis://a.lan/3", "redis://a.lan/3", ""},
		{"redis://a.lan,b.lan/3?sentinel=main", "redis://a.lan,b.lan/3?sentinel=main", ""},
		{"redis://gate:hun/t?e#r2:@@a.lan", "redis://xxxxx:xxxxx@a.lan", ""},
		{"redis://gate:a@b.lan,gate:hunter2@c.lan", "redis://xxxxx:xxxxx@c.lan", ""},

		{"hunter2", "", "expected redis://HOST:PORT"},
		{"valkey.lan:6379", "", "expected redis://HOST:PORT"},
		{"hunter2://valkey.lan", "", "expected redis://HOST:PORT"},
		{"valkeys://valkey.lan", "", "expected redis://HOST:PORT"},
		{"redis://", "", "a host is missing"},
		{"redis://a.lan,", "", "a host is missing"},
		{"redis://:6379", "", "a host is missing"},
		{"redis://a.lan:0", "", "expected a port between 1 and 65535"},
		{"redis://a.lan:", "", "expected a port between 1 and 65535"},
		{"redis://a.lan:6379:1", "", "expected a port between 1 and 65535"},
		{"redis://a b", "", "host name: expected"},
		{"redis://2001:db8::1", "", "expected a port"},
		{"redis://[a.lan]:1", "", "an IPv6 address"},
		{"redis://[::1]1", "", "an IPv6 address"},
		{"redis://gate:hunter2", "", "user and password end with @"},
		{"redis://gate hunter2", "", "host name: expected"},
		{"redis://a.lan/x", "", "only /NUMBER"},
		{"redis://a.lan/1/", "", "only /NUMBER"},
		{"redis://a.lan,b.lan/1", "", "no database but 0"},
		{"redis://a.lan?db=1", "", "only sentinel=NAME"},
		{"redis://a.lan?sentinel=", "", "only sentinel=NAME"},
		{"redis://a.lan?sentinel=a&b=c", "", "only sentinel=NAME"},
		{"redis://hunter2@a.lan", "", "expected USER:PASSWORD"},
		{"redis://gate:@a.lan", "", "expected USER:PASSWORD"},
		{"redis://gate:hunter2%@a.lan", "", "write %25"},
		{"redis://gate%:hunter2@a.lan", "", "write %25"},
		{"redis://a.lan?sentinel=gate@hunter2", "", "expected USER:PASSWORD"},
	} {
		a, err := parseStoreAddress(c.text)
		switch {
		case err != nil && (c.mistake == "" || !strings.Contains(err.Error(), c.mistake) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: got %v, want %q", c.text, err, c.mistake)
		case err == nil && (c.mistake != "" || a.String() != c.shown || string(a) != c.text):
			t.Errorf("%s: got %q, shown as %q", c.text, string(a), a)
		}
	}
}

// FuzzStoreAddress: the password of an address is not in what is shown of it, which can be read
// again.
func FuzzStoreAddress(f *testing.F) {
	for _, text := range []string{"redis://u:PW@a.lan,b.lan?sentinel=x", "rediss://:PW@[::1]:1", "redis://PW", "PW://", "redis://u:PW/@a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseStoreAddress(text)
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(text, "://")
		if i := strings.LastIndex(rest, "@"); i >= 0 && !strings.HasSuffix(a.String(), "://"+hidden+":"+hidden+rest[i:]) {
			t.Errorf("%q is shown as %q", text, a)
		}
		if again, err := parseStoreAddress(a.String()); err != nil || again.String() != a.String() {
			t.Errorf("%q is read again as %q, %v", a, again, err)
		}
	})
}

// TestFleetHash: the hash depends on what should be equal in all gates, and on nothing else.
func TestFleetHash(t *testing.T) {
	hash := func(change func(*Config)) string {
		c := Default()
		c.Fleet.Address, c.Fleet.KeyFile = "redis://a:hunter2@store.lan", "/etc/fleet.key"
		change(c)
		h, err := c.FleetHash()
		if err != nil || len(h) != 16 {
			t.Fatalf("%q, %v", h, err)
		}
		return h
	}
	first := hash(func(*Config) {})
	for name, change := range map[string]func(*Config){
		"listen":         func(c *Config) { c.Listen = "10.0.0.1:9309" },
		"transparent":    func(c *Config) { c.ListenTransparent = "10.0.0.1:9311" },
		"data_dir":       func(c *Config) { c.DataDir = "/elsewhere" },
		"admin":          func(c *Config) { c.Admin.Hosts = []string{"gate-2.example"} },
		"limits":         func(c *Config) { c.Limits.MaxConnections = 1 },
		"log":            func(c *Config) { c.Log.Audit = "/elsewhere" },
		"fleet.address":  func(c *Config) { c.Fleet.Address = "redis://b:hunter3@127.0.0.1" },
		"fleet.key_file": func(c *Config) { c.Fleet.KeyFile = "/elsewhere" },
		"fleet.ca_file":  func(c *Config) { c.Fleet.CAFile = "/elsewhere" },
		"https.ca_cert":  func(c *Config) { c.HTTPS.CACert, c.HTTPS.CAKey = "/elsewhere", "/elsewhere" },
		"egress.ca_file": func(c *Config) { c.Egress.CAFile = "/elsewhere" },
	} {
		if got := hash(change); got != first {
			t.Errorf("%s changes the hash", name)
		}
	}
	for name, change := range map[string]func(*Config){
		"mode":          func(c *Config) { c.Mode = Report },
		"robots":        func(c *Config) { c.Robots.MaxAge = time.Hour },
		"overrides":     func(c *Config) { c.Overrides = []Override{{Action: Deny, Reason: "r"}} },
		"pace":          func(c *Config) { c.Pace.MinDelay = time.Second },
		"fleet.timeout": func(c *Config) { c.Fleet.Timeout = time.Second },
	} {
		if got := hash(change); got == first {
			t.Errorf("%s does not change the hash", name)
		}
	}
}

// TestFleetSecret: the password of the store is in no configuration that is kept.
func TestFleetSecret(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fleet.key"), make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "fleet: {address: 'redis://gate:${PW}@a.lan:1,b.lan:2', key_file: fleet.key}"
	c, err := Parse(filepath.Join(dir, "x.yaml"), []byte(text), func(string) (string, bool) { return "hunter2", true })
	if err != nil {
		t.Fatal(err)
	}
	kept, err := c.Effective()
	if err != nil || bytes.Contains(kept, []byte("hunter2")) || !bytes.Contains(kept, []byte("redis://xxxxx:xxxxx@a.lan:1,b.lan:2")) {
		t.Errorf("%v\n%s", err, kept)
	}
	if again, err := Kept(kept); err != nil || again.Fleet.Prefix != "robotsgate" {
		t.Errorf("%+v, %v", again, err)
	}
	if got := string(c.Fleet.Address); got != "redis://gate:hunter2@a.lan:1,b.lan:2" {
		t.Errorf("the gate has the address %s", got)
	}
}
