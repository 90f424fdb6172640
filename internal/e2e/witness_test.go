//go:build unix

package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
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

// newLoggedGate returns a gate that is not started, with more lines of its configuration below log.
func newLoggedGate(t *testing.T, log string) *loggedGate {
	t.Helper()
	g := &loggedGate{t: t, dir: t.TempDir(), errs: new(gatetest.Output)}
	g.origin = "http://" + gatetest.ServeFiles(t, "testdata/clients/site", g.dir).HTTP
	g.robotsgate("keys", "new", "log.pem")
	g.configure(log)
	t.Cleanup(func() {
		if g.Gate != nil {
			g.Kill()
		}
	})
	return g
}

// configure writes the configuration.
func (g *loggedGate) configure(log string) {
	g.t.Helper()
	gatetest.Write(g.t, filepath.Join(g.dir, "gate.yaml"), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {allow_private: [127.0.0.0/8], ca_file: origin-ca.pem}\n"+
		"limits: {shutdown_grace: 3s}\nlog:\n  audit: audit.jsonl\n  audit_name: "+logName+"\n  audit_key_file: log.pem\n"+log)
}

// witnessed adds a witness to the configuration.
func (g *loggedGate) witnessed(url, key string) {
	g.configure(fmt.Sprintf("  witnesses: [{url: %q, key: %q}]\n", url, key))
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

// end ends the gate in good order, and returns how long that took.
func (g *loggedGate) end() time.Duration {
	g.t.Helper()
	begin := time.Now()
	if err := g.Terminate(); err != nil {
		g.t.Errorf("the gate ends with %v", err)
	}
	return time.Since(begin)
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

// request sends requests through the gate, and waits until their records are written. None may take as long as a
// witness that does not answer.
func (g *loggedGate) request(n int) {
	g.t.Helper()
	client := gatetest.Client(g.t, g.Proxy)
	for range n {
		g.sent++
		begin := time.Now()
		gatetest.Request(g.t, client, http.MethodGet, fmt.Sprintf("%s/page.html?%d", g.origin, g.sent), http.StatusOK)
		if took := time.Since(begin); took > 5*time.Second {
			g.t.Errorf("a request took %v", took)
		}
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

// cosigned waits until the log has a checkpoint of all records that the witness has cosigned.
func (g *loggedGate) cosigned() {
	g.t.Helper()
	g.logs(fmt.Sprintf(`{"checkpoint":"%s\\n%d\\n[^"]*\\n— witness\.example\.com `, logName, g.sent))
}

// save copies what a gate that has ended has on disk, and returns what puts it back.
func (g *loggedGate) save() (restore func()) {
	g.t.Helper()
	copied := filepath.Join(g.dir, "copy")
	if err := os.CopyFS(filepath.Join(copied, "data"), os.DirFS(filepath.Join(g.dir, "data"))); err != nil {
		g.t.Fatal(err)
	}
	log := g.log()
	return func() {
		g.t.Helper()
		if err := os.RemoveAll(filepath.Join(g.dir, "data")); err != nil {
			g.t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(copied, "data"), filepath.Join(g.dir, "data")); err != nil {
			g.t.Fatal(err)
		}
		gatetest.Write(g.t, filepath.Join(g.dir, "audit.jsonl"), log)
	}
}

// verify verifies the log. It returns the size that the witness with the key has cosigned.
func (g *loggedGate) verify(key string) (cosigned string) {
	g.t.Helper()
	out := g.robotsgate("audit", "-c", "gate.yaml", "--verify", "--strict", "--witness", key, "audit.jsonl")
	if !strings.Contains(out, fmt.Sprintf("\n%d records in 1 log: none changed, missing or added\n", g.sent)) {
		g.t.Errorf("%d requests were sent; audit --verify prints\n%s", g.sent, out)
	}
	_, cosigned, _ = strings.Cut(out, "; cosigned by witness.example.com up to ")
	cosigned, _, _ = strings.Cut(cosigned, "\n")
	return cosigned
}

// TestWitness: litewitness cosigns the log of a gate, whatever happens to both. What it can't cosign is reported, and no
// request waits for it.
func TestWitness(t *testing.T) {
	longWithoutRace(t)
	for _, test := range []struct {
		name      string
		do        func(t *testing.T, g *loggedGate, w *liteWitness)
		lost      string // why the witness can't cosign any more, as the gate logs it
		undecided int
	}{
		{name: "started again", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			w.kill()
			g.request(1)
			g.errs.WaitFor(t, "a witness has not cosigned the audit log.*connection refused")
			w.start()
			g.cosigned()
			g.errs.WaitFor(t, "the witness cosigns the audit log again")
		}},
		{name: "stopped and continued", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			w.signal(syscall.SIGSTOP)
			g.request(1)
			g.errs.WaitFor(t, "a witness has not cosigned the audit log")
			g.request(1)
			w.signal(syscall.SIGCONT)
			g.cosigned()
		}},
		{name: "stopped at the end of the gate", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			w.signal(syscall.SIGSTOP)
			g.request(1)
			if took := g.end(); took < 2*time.Second || took > 8*time.Second {
				t.Errorf("the gate has ended after %v, with a witness that does not answer and shutdown_grace of 3s", took)
			}
			w.signal(syscall.SIGCONT)
			g.start()
			g.request(1)
		}},
		{name: "stopped at the end of the gate, with a request", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			w.signal(syscall.SIGSTOP)
			hanging := newFleetOrigins(t).next(hanging)
			go gatetest.Client(t, g.Proxy).Get(hanging + "/page")
			g.request(1)
			if took := g.end(); took > 5*time.Second {
				t.Errorf("the gate has ended after %v, with a request and a witness that do not end, and shutdown_grace of 3s", took)
			}
			g.sent++ // the request that was cut off, without a decision
			w.signal(syscall.SIGCONT)
			g.start()
			g.request(1)
		}, undecided: 1},
		{name: "cosigned when the gate was killed", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			g.end()
			cable := gatetest.NewCable(t, strings.Trim(w.url, "htp:/"))
			cable.HangAnswers()
			g.witnessed("http://"+cable.HostPort(), w.key)
			g.start()
			g.request(1)
			gatetest.Becomes(t, time.Minute, "the witness has cosigned", func() bool { return w.size() == 2 })
			g.Kill()
			cable.Restore()
			g.start()
			g.request(1)
		}},
		{name: "asked through TLS", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			to, err := url.Parse(w.url)
			if err != nil {
				t.Fatal(err)
			}
			front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(to))
			t.Cleanup(front.Close)
			g.end()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
			gatetest.Write(t, filepath.Join(g.dir, "origin-ca.pem"), string(ca))
			g.witnessed(front.URL, w.key)
			g.start()
			g.request(1)
		}},
		{name: "without its database", lost: "it has cosigned 1 records of this log, and knows of 0 now", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			w.kill()
			if err := os.Remove(filepath.Join(w.dir, "litewitness.db")); err != nil {
				t.Fatal(err)
			}
			w.start()
			g.request(1)
			g.errs.WaitFor(t, "it does not know this log: give its operator the log's verifier key")
			w.run(w.know)
		}},
		{name: "ahead of the log", lost: "it has cosigned 3 records of this log, which has [12]:", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			g.end()
			restore := g.save()
			g.start()
			g.request(2)
			g.end()
			restore()
			g.sent -= 2
			g.start()
			g.request(1)
		}},
		{name: "without the gate's proof", lost: "it has cosigned 1 records of this log, and what a proof from there needs is lost", do: func(t *testing.T, g *loggedGate, w *liteWitness) {
			w.kill()
			g.request(1)
			g.end()
			kept := filepath.Join(g.dir, "data/audit-checkpoint")
			note, _, _ := strings.Cut(gatetest.Read(t, kept), "{")
			if err := os.WriteFile(kept, []byte(note), 0o600); err != nil {
				t.Fatal(err)
			}
			w.start()
			g.start()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newLoggedGate(t, "")
			w := startLiteWitness(t, filepath.Join(g.dir, "gate.yaml"))
			g.witnessed(w.url, w.key)
			g.start()
			g.request(1)
			g.cosigned()
			test.do(t, g, w)
			if test.lost != "" {
				g.errs.WaitFor(t, test.lost)
				known := w.size()
				g.request(1)
				g.end()
				if got := g.verify(w.key); got != "1" || w.size() != known {
					t.Errorf("the log has cosignatures up to %s of %d records, and the witness has gone from %d to %d", got, g.sent, known, w.size())
				}
				return
			}
			g.cosigned()
			g.request(2)
			g.end() // it waits for the cosignature of the last checkpoint
			if got := g.verify(w.key); got != fmt.Sprint(g.sent) || w.size() != g.sent {
				t.Errorf("the log has cosignatures up to %s of %d records, the witness knows %d", got, g.sent, w.size())
			}
			g.robotsgate("evidence", "bundle", "-c", "gate.yaml", "-o", "all.zip", "audit.jsonl")
			out := g.robotsgate("evidence", "check", "--witness", w.key, "all.zip")
			if !strings.Contains(out, fmt.Sprintf("%d records, %d proven, %d decided alike", g.sent, g.sent, g.sent-test.undecided)) || !strings.Contains(out, "\ncosigned by witness.example.com") {
				t.Errorf("evidence check prints\n%s", out)
			}
		})
	}
}
