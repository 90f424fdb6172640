package confine

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseReach(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"db.Example.:5432", "db.example:5432"},
		{"127.0.0.1:5432", "127.0.0.1:5432"},
		{"[::1]:5432", "[::1]:5432"},
		{"[::ffff:10.0.0.1]:80", "10.0.0.1:80"},
		{"db.example", "is neither HOST:PORT nor unix:PATH"},
		{":5432", "is neither HOST:PORT nor unix:PATH"},
		{"db.example:0", "is not a port"},
		{"db.example:65536", "is not a port"},
		{"db.example:http", "is not a port"},
		{"db.example:53", "port 53 cannot be reached"},
		{"0.0.0.0:80", "name one host"},
		{"[fe80::1%eth0]:80", "name one host"},
		{"user@db:80", "not a valid name"},
		{"unix:", "needs the path"},
		{"unix:/no/such/socket", "start the server"},
		{"unix:reach.go", "is not a socket"},
	} {
		r, err := ParseReach(c.text)
		got := r.hostPort()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if r, err := ParseReach("unix:" + path); err != nil || r.Path != path {
		t.Errorf("a socket: got %v, %v", r, err)
	}
}

func TestParsePorts(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"80,443", "[80 443]"},
		{"80, 8080,80", "[80 8080]"},
		{"", "no port is given"},
		{"80,", `"" is not a port`},
		{"-1", `"-1" is not a port`},
	} {
		ports, err := ParsePorts(c.list)
		got := fmt.Sprint(ports)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.list, got, c.want)
		}
	}
}

func TestCheckOptions(t *testing.T) {
	if o := (Options{}); o.check() != nil || !slices.Equal(o.Ports, DefaultPorts) {
		t.Errorf("without ports: got %v", o.Ports)
	}
	for _, o := range []Options{{Ports: []uint16{80, 53}}, {Reach: make([]Reach, maxReach+1)}} {
		if o.check() == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}

// TestReachAddresses checks at which addresses a command finds a destination: those that a resolver
// inside may return.
func TestReachAddresses(t *testing.T) {
	own, err := os.Hostname()
	if own = canonicalName(own); err != nil {
		t.Fatal(err)
	}
	n := newNames([]Reach{{Host: "db"}, {Host: "db2"}, {Host: own}})
	for _, c := range []struct{ host, want string }{
		{"10.1.2.3", "[10.1.2.3]"},
		{"localhost", "[127.0.0.1 ::1]"},
		{"db", "[7.0.0.1]"},
		{"db2", "[7.0.0.2]"},
		{own, "[7.0.0.3 127.0.0.1]"},
	} {
		if got := fmt.Sprint(Reach{Host: c.host}.addresses(n)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.host, got, c.want)
		}
	}
}
