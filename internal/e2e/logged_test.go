//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// A loggedGate is a gate with an audit log, which may be killed and started again.
type loggedGate struct {
	*gatetest.Gate
	t      *testing.T
	dir    string
	origin string // URL
	errs   *gatetest.Output
	sent   int // requests
}

const logName = "crawl.example.com/gate-1"

// newLoggedGate returns a gate that is not started.
func newLoggedGate(t *testing.T) *loggedGate {
	t.Helper()
	g := &loggedGate{t: t, dir: t.TempDir(), errs: new(gatetest.Output)}
	g.origin = "http://" + gatetest.ServeFiles(t, "testdata/clients/site", g.dir).HTTP
	g.robotsgate("keys", "new", "log.pem")
	g.configure()
	t.Cleanup(func() {
		if g.Gate != nil {
			g.Kill()
		}
	})
	return g
}

// configure writes the configuration.
func (g *loggedGate) configure() {
	g.t.Helper()
	gatetest.Write(g.t, filepath.Join(g.dir, "gate.yaml"), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {allow_private: [127.0.0.0/8], ca_file: origin-ca.pem}\n"+
		"limits: {shutdown_grace: 3s}\nlog:\n  audit: audit.jsonl\n  audit_name: "+logName+"\n  audit_key_file: log.pem\n")
}

// start starts the gate.
func (g *loggedGate) start() {
	g.t.Helper()
	cmd := exec.Command("robotsgate", "serve", "-c", "gate.yaml")
	cmd.Dir = g.dir
	gate, err := gatetest.StartGate(cmd, io.Discard, g.errs)
	if err != nil {
		g.t.Fatalf("%v\n%s", err, g.errs)
	}
	g.Gate = gate
}

// end ends the gate in good order.
func (g *loggedGate) end() {
	g.t.Helper()
	if err := g.Terminate(); err != nil {
		g.t.Errorf("the gate ends with %v", err)
	}
}

// robotsgate runs a command in the gate's folder, and returns what it prints.
func (g *loggedGate) robotsgate(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("robotsgate", args...)
	cmd.Dir = g.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Errorf("robotsgate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// request sends requests through the gate, and waits until their records are written.
func (g *loggedGate) request(n int) {
	g.t.Helper()
	client := gatetest.Client(g.t, g.Proxy)
	for range n {
		g.sent++
		gatetest.Request(g.t, client, http.MethodGet, fmt.Sprintf("%s/page.html?%d", g.origin, g.sent), http.StatusOK)
	}
	g.logs(fmt.Sprintf(`page\.html\?%d"`, g.sent))
}

// log returns the log.
func (g *loggedGate) log() string { return gatetest.Read(g.t, filepath.Join(g.dir, "audit.jsonl")) }

// logs waits until the log has what a pattern matches.
func (g *loggedGate) logs(pattern string) {
	g.t.Helper()
	compiled := regexp.MustCompile(pattern)
	gatetest.Becomes(g.t, time.Minute, "the log has "+pattern, func() bool { return compiled.MatchString(g.log()) })
}
