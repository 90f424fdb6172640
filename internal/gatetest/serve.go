package gatetest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Serve writes a configuration to gate.yaml in dir and runs robotsgate serve with it until the
// test ends, when the process must end without an error. A prefix is a command that runs
// robotsgate and its arguments.
func Serve(t testing.TB, dir, config string, prefix ...string) *Gate {
	t.Helper()
	file := filepath.Join(dir, "gate.yaml")
	Write(t, file, config)
	args := append(prefix, "robotsgate", "serve", "-c", file)
	gate, err := StartGate(exec.Command(args[0], args[1:]...), t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	})
	return gate
}

// A Site is an origin and a gate that reaches every name there.
type Site struct {
	*Gate
	Log    string // file with the requests that the origin has received
	Config string // configuration for robotsgate env, with the gate's port
}

// ServeSite serves the files of a folder behind a gate, which uses the origin as its parent
// proxy. The files of both are in dir. The settings are added to the gate's configuration.
func ServeSite(t testing.TB, site, dir, settings string) *Site {
	t.Helper()
	s := &Site{Log: filepath.Join(dir, "origin.log"), Config: filepath.Join(dir, "env.yaml")}
	origin := ServeFiles(t, site, dir)
	config := func(listen string) string {
		return fmt.Sprintf("listen: %s\ndata_dir: data\negress: {proxy: \"http://%s\", ca_file: origin-ca.pem}\n%s", listen, origin.HTTP, settings)
	}
	s.Gate = Serve(t, dir, config("127.0.0.1:0"))
	Write(t, s.Config, config(strings.TrimPrefix(s.Proxy, "http://")))
	return s
}

// ServeFiles starts an origin that serves the files of a folder until the test ends. Its log,
// origin.log, and its certificate, origin-ca.pem, are in dir.
func ServeFiles(t testing.TB, site, dir string) *Origin {
	t.Helper()
	origin, err := StartOrigin(site, filepath.Join(dir, "origin.log"), filepath.Join(dir, "origin-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	return origin
}
