//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// A loggedLine is what the test reads of a line of an audit log.
type loggedLine struct {
	Path       string
	Index      int
	Checkpoint string
	Resumed    int
}

// size returns the size and the name of a checkpoint's log.
func (l *loggedLine) size() (size int, name string) {
	name, rest, _ := strings.Cut(l.Checkpoint, "\n")
	fmt.Sscan(rest, &size)
	return size, name
}

// lines returns the whole lines of the log.
func (g *loggedGate) lines() (lines []loggedLine) {
	g.t.Helper()
	text := g.log()
	for line := range strings.Lines(text[:strings.LastIndexByte(text, '\n')+1]) {
		var l loggedLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			g.t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// A kill is what a killed gate has left.
type kill struct {
	lines int // of its log
	kept  int // size of the checkpoint in data_dir
}

// killed returns what the gate has left.
func (g *loggedGate) killed() kill {
	g.t.Helper()
	kept := loggedLine{Checkpoint: gatetest.Read(g.t, filepath.Join(g.dir, "data/audit-checkpoint"))}
	size, _ := kept.size()
	return kill{strings.Count(g.log(), "\n"), size}
}

// load lets several clients send requests, each with a number of its own, until the gate is gone, and kills it after a
// time. Send reports whether its request was answered. Load returns the numbers of the requests that were answered more
// than a second before.
func (g *loggedGate) load(clients int, after time.Duration, send func(c *http.Client, n int) bool) (answered []int) {
	times := map[int]time.Time{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range clients {
		client := gatetest.Client(g.t, g.Proxy)
		all.Go(func() {
			for {
				mu.Lock()
				g.sent++
				n := g.sent
				mu.Unlock()
				if !send(client, n) {
					return // the gate is gone
				}
				mu.Lock()
				times[n] = time.Now()
				mu.Unlock()
			}
		})
	}
	<-time.After(after)
	killed := time.Now()
	g.Kill()
	all.Wait()
	for n, at := range times {
		if killed.Sub(at) > time.Second {
			answered = append(answered, n)
		}
	}
	return answered
}

// TestSoakKilled: a gate that is killed again and again under load continues its log, and nothing of it is lost but
// records of requests in the last second.
func TestSoakKilled(t *testing.T) {
	t.Parallel()
	random := gatetest.Random(t)
	g := newLoggedGate(t)
	var answered []int
	var kills []kill
	for range gatetest.Size(3, 30) {
		g.start()
		answered = append(answered, g.load(4, time.Duration(random.IntN(1300))*time.Millisecond, func(c *http.Client, n int) bool {
			resp, err := c.Get(fmt.Sprintf("%s/page.html?%d", g.origin, n))
			if err != nil {
				return false
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			<-time.After(5 * time.Millisecond)
			return err == nil && resp.StatusCode == http.StatusOK
		})...)
		kills = append(kills, g.killed())
	}
	g.start()
	g.request(1)
	g.end()
	lines := g.lines()

	paths := map[string]bool{}
	records, covered, resumed := 0, 0, 0
	for i, l := range lines {
		size, name := l.size()
		if len(kills) > 0 && i == kills[0].lines {
			kept := covered
			for len(kills) > 0 && i == kills[0].lines { // a gate may be killed before it writes, and have kept a checkpoint
				kept, kills = max(kept, kills[0].kept), kills[1:]
			}
			want := records - kept
			if l.Resumed != want || l.Checkpoint == "" {
				t.Errorf("line %d is the first of a start after a kill, with %d records of which %d are covered: got %+v, want resumed %d", i+1, records, covered, l, want)
			}
			resumed += want
		}
		switch {
		case l.Checkpoint != "" && name != logName:
			t.Errorf("line %d is a checkpoint of %s", i+1, name)
		case l.Checkpoint != "":
			covered = size
		case l.Index != records:
			t.Fatalf("line %d has record %d, want %d", i+1, l.Index, records)
		default:
			records++
			paths[l.Path] = true
		}
	}
	for _, n := range answered {
		if !paths[fmt.Sprintf("/page.html?%d", n)] {
			t.Errorf("request %d was answered a second before a kill, and has no record", n)
		}
	}
	t.Logf("%d records, %d requests answered a second before a kill, %d records resumed", records, len(answered), resumed)
	out := g.robotsgate("audit", "-c", "gate.yaml", "--verify", "--strict", "audit.jsonl")
	if !strings.Contains(out, fmt.Sprintf("%d records: none changed, missing or added\n", records)) {
		t.Errorf("%d records; audit --verify prints\n%s", records, out)
	}
	left, err := filepath.Glob(filepath.Join(g.dir, "data", "audit-*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		info, err := os.Stat(file)
		t.Errorf("a killed gate has left %s: %v, %v", file, info, err)
	}
}

// manyOrigins is a server that is another origin at each address of loopback.
type manyOrigins struct {
	port string

	mu      sync.Mutex
	fetches map[string]int // of robots.txt, by host
}

func newManyOrigins(t *testing.T) *manyOrigins {
	t.Helper()
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	o := &manyOrigins{fetches: map[string]int{}}
	_, o.port, _ = net.SplitHostPort(l.Addr().String())
	s := &http.Server{Handler: o}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return o
}

func (o *manyOrigins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		o.mu.Lock()
		o.fetches[r.Host]++
		o.mu.Unlock()
		fmt.Fprintf(w, "# %s\nUser-agent: *\nDisallow: /private/\n", r.Host)
	}
}

func (o *manyOrigins) host(n int) string {
	return fmt.Sprintf("127.%d.%d.%d:%s", 1+n>>16, n>>8&255, n&255, o.port)
}

// TestSoakKilledCrawl: a gate that is killed again and again in a crawl has the evidence for every record that it has
// written, and the answers that it had a second before.
func TestSoakKilledCrawl(t *testing.T) {
	t.Parallel()
	random := gatetest.Random(t)
	g, o := newLoggedGate(t), newManyOrigins(t)
	var known []int // origins that were visited more than a second before a kill
	for range gatetest.Size(3, 20) {
		g.start()
		known = append(known, g.load(8, time.Duration(200+random.IntN(1500))*time.Millisecond, func(c *http.Client, n int) bool {
			resp, err := c.Get("http://" + o.host(n) + "/page")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return true
		})...)
	}
	g.start()
	client := gatetest.Client(t, g.Proxy)
	for _, n := range known {
		resp, err := client.Get("http://" + o.host(n) + "/private/x")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || o.fetches[o.host(n)] != 1 {
			t.Errorf("origin %d: got %s, robots.txt was fetched %d times", n, resp.Status, o.fetches[o.host(n)])
		}
	}
	g.end()
	if strings.Contains(g.errs.String(), "snapshots") {
		t.Errorf("the gate complains: %s", g.errs)
	}
	logs, err := filepath.Glob(filepath.Join(g.dir, "audit*.jsonl*")) // also those that were rotated
	if err != nil {
		t.Fatal(err)
	}
	out := g.robotsgate(append([]string{"audit", "-c", "gate.yaml", "--replay"}, logs...)...)
	if want := regexp.MustCompile(`(?m)^decided again: \d+ records the same, 0 differences, evidence gone: 0, no decision: 0$`); !want.MatchString(out) {
		t.Errorf("audit --replay prints\n%s", out)
	}
	t.Logf("%d origins, %d known after their kill; %s", g.sent, len(known), out)
}
