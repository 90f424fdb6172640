//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"robotsgate/internal/gatetest"
)

// A fewFilesGate is a gate with a low limit on open files. Its origins delay their responses to
// /held.
type fewFilesGate struct {
	*gatetest.Gate
	port string // of all origins, which are addresses in 127.0.0.0/8

	mu      sync.Mutex
	changed *sync.Cond
	open    int           // connections to origins
	held    int           // waiting requests for /held
	refused int           // responses of the gate that it is out of descriptors
	release chan struct{} // closed to answer the waiting requests
}

func startFewFiles(t *testing.T, ulimit string) *fewFilesGate {
	t.Helper()
	g := &fewFilesGate{release: make(chan struct{})}
	g.changed = sync.NewCond(&g.mu)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	_, g.port, _ = net.SplitHostPort(l.Addr().String())
	origin := &http.Server{Handler: http.HandlerFunc(g.serveOrigin), ConnState: func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			g.count(&g.open, 1)
		case http.StateClosed:
			g.count(&g.open, -1)
		}
	}}
	go origin.Serve(l)
	t.Cleanup(func() { origin.Close() })

	config := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\negress: {allow_private: [127.0.0.0/8]}\nlog: {audit: audit.log}\n"
	g.Gate = gatetest.Serve(t, t.TempDir(), config, "sh", "-c", "ulimit "+ulimit+` && exec "$0" "$@"`)
	return g
}

func (g *fewFilesGate) serveOrigin(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/held" {
		g.count(&g.held, 1)
		<-g.release
		g.count(&g.held, -1)
	}
	if r.URL.Path == "/robots.txt" {
		io.WriteString(w, "User-agent: *\nDisallow: /private/\n")
	}
}

func (g *fewFilesGate) count(n *int, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*n += by
	g.changed.Broadcast()
}

// until waits for a condition on the counters.
func (g *fewFilesGate) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	late := false
	timer := time.AfterFunc(time.Minute, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		late = true
		g.changed.Broadcast()
	})
	defer timer.Stop()
	for !holds() && !late {
		g.changed.Wait()
	}
	if late {
		t.Fatalf("not within a minute: %s (%d connections, %d requests held)", what, g.open, g.held)
	}
}

// url returns the URL of a path of the n-th origin.
func (g *fewFilesGate) url(n int, path string) string {
	return fmt.Sprintf("http://127.77.%d.%d:%s%s", n/250, n%250+1, g.port, path)
}

// ask sends one request over a new connection. It returns the status, and an error unless the
// status is 200, or 503 with Retry-After.
func (g *fewFilesGate) ask(page string) (status int, err error) {
	proxy, err := url.Parse(g.Proxy)
	if err != nil {
		return 0, err
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
	resp, err := client.Get(page)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return 0, err
	case resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "" && strings.Contains(string(body), "out of file descriptors"):
		g.count(&g.refused, 1)
	case resp.StatusCode != 200:
		err = fmt.Errorf("%s: %s: %s", page, resp.Status, body)
	}
	return resp.StatusCode, err
}

// askAll sends a request to each of the origins, clients at a time, and returns how many
// responses have status 200. All others must have status 503.
func (g *fewFilesGate) askAll(t *testing.T, path string, origins, clients int) (answered int) {
	t.Helper()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for first := range clients {
		wg.Go(func() {
			for n := first; n < origins; n += clients {
				status, err := g.ask(g.url(n, path))
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else if status == 200 {
					answered++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		t.Errorf("%d requests without a response, or with another status than 200 and 503; the first: %v", len(errs), errs[0])
	}
	return answered
}

// metric returns the value of a metric without labels.
func (g *fewFilesGate) metric(t *testing.T, name string) (value float64) {
	t.Helper()
	resp, err := http.Get(g.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(text, &value); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("the gate has no metric %s", name)
	return 0
}

const unreachableFetches = `robotsgate_robots_fetches_total{outcome="unreachable"}`

// TestFewDescriptors: a gate with a limit of 300 open files serves more origins than that, and
// answers 503 when too many are in use at once. It does not count its own shortage as a failure of
// an origin.
func TestFewDescriptors(t *testing.T) {
	const origins, clients = 600, 140
	g := startFewFiles(t, "-n 300")
	g.Log.WaitFor(t, `the limit on open files is too low for limits\.max_connections: 150 clients`)
	if n := g.askAll(t, "/", origins, 20); n != origins {
		t.Errorf("%d of %d origins answered one after the other", n, origins)
	}
	const kept = 28 // a quarter of the descriptors for origins
	g.until(t, "the gate keeps few idle connections", func() bool { return g.open <= kept })

	answered := make(chan int)
	go func() { answered <- g.askAll(t, "/held", clients, clients) }()
	g.until(t, "each request is held or refused", func() bool { return g.held+g.refused == clients })
	close(g.release)
	if n := <-answered; n != clients-g.refused || n == 0 || g.refused == 0 {
		t.Errorf("of %d requests at once the origins answered %d and the gate refused %d", clients, n, g.refused)
	}

	if n := g.askAll(t, "/", origins, 20); n != origins {
		t.Errorf("afterwards %d of %d origins answered", n, origins)
	}
	g.until(t, "the gate keeps few idle connections", func() bool { return g.open <= kept })
	if n := g.metric(t, unreachableFetches); n > 0 {
		t.Errorf("%v origins count as unreachable", n)
	}
	if n := g.metric(t, "robotsgate_resource_failures_total"); n == 0 {
		t.Error("robotsgate_resource_failures_total is 0")
	}
}

// TestDescriptorsRunOut: while the system gives the gate no descriptor, not even for clients, the
// gate waits and answers what it can. It continues afterwards.
func TestDescriptorsRunOut(t *testing.T) {
	const clients = 60
	g := startFewFiles(t, "-n 300")
	g.askAll(t, "/", 50, 10) // to have idle connections
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.PID()))
	if err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(len(open)), Max: 300}
	if err := unix.Prlimit(g.PID(), unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int)
	go func() { answered <- g.askAll(t, "/held", clients, clients) }()
	g.Log.WaitFor(t, "the gate is out of file descriptors")
	close(g.release)
	if n := <-answered; n != clients-g.refused {
		t.Errorf("of %d requests at once the origins answered %d and the gate refused %d", clients, n, g.refused)
	}
	limit.Cur = 300
	if err := unix.Prlimit(g.PID(), unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	if n := g.askAll(t, "/", clients, 10); n != clients {
		t.Errorf("afterwards %d of %d origins answered", n, clients)
	}
	if n := g.metric(t, unreachableFetches); n > 0 {
		t.Errorf("%v origins count as unreachable", n)
	}
}

// TestSoftLimitRaised: the gate raises its soft limit on open files to the hard limit.
func TestSoftLimitRaised(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	g := startFewFiles(t, "-S -n 200")
	if n := g.metric(t, "process_max_fds"); n < float64(own.Max-1) {
		t.Errorf("the gate's limit is %v open files, the hard limit is %d", n, own.Max)
	}
}
