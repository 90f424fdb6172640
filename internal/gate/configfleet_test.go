package gate

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"robotsgate/policy"
)

// TestFleetHash: the hash depends on what should be equal in all gates, and on nothing else.
func TestFleetHash(t *testing.T) {
	hash := func(change func(*Config)) string {
		c := DefaultConfig()
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
		"log":            func(c *Config) { c.Log.Audit.File = "/elsewhere" },
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
		"mode":          func(c *Config) { c.Mode = policy.Report },
		"robots":        func(c *Config) { c.Robots.MaxAge = time.Hour },
		"overrides":     func(c *Config) { c.Overrides = []policy.Override{{Action: policy.Deny, Reason: "r"}} },
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
	c, err := ParseConfig(filepath.Join(dir, "x.yaml"), []byte(text), func(string) (string, bool) { return "hunter2", true })
	if err != nil {
		t.Fatal(err)
	}
	kept, err := c.Effective()
	if err != nil || bytes.Contains(kept, []byte("hunter2")) || !bytes.Contains(kept, []byte("redis://xxxxx:xxxxx@a.lan:1,b.lan:2")) {
		t.Errorf("%v\n%s", err, kept)
	}
	if again, err := KeptConfig(kept); err != nil || again.Fleet.Prefix != "robotsgate" {
		t.Errorf("%+v, %v", again, err)
	}
	if got := string(c.Fleet.Address); got != "redis://gate:hunter2@a.lan:1,b.lan:2" {
		t.Errorf("the gate has the address %s", got)
	}
}
