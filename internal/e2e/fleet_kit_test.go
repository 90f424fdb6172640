//go:build unix

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// fleetOrigins are origins at many addresses of loopback, with one listener. What an origin answers
// depends on the last number of its address.
type fleetOrigins struct {
	port string

	mu      sync.Mutex
	given   int
	fetches map[string]int // of robots.txt, by host
	changed map[string]bool
	arrived map[string]chan struct{} // closed when the first fetch has arrived
}

// The kinds of origins.
const (
	withRules    = 1 + iota // disallows /private
	closedOrigin            // disallows all
	withoutFile             // 404
	brokenOrigin            // 503
	varying                 // disallows /private for all product tokens but EvilBot, with Vary: User-Agent
	slowOrigin              // as withRules, after half a second
	largeOrigin             // as withRules, in 300 KiB
	redirecting             // as withRules, at another path
	changing                // as withRules; when changed it disallows /page too
	hangingOnce             // as withRules; the first fetch has no answer
	hanging                 // no fetch has an answer
	breaking                // as withRules; when changed it answers with 503
	pacedOrigin             // as withRules, with a Crawl-delay of 1 s
	hugeOrigin              // as withRules, in 2 MiB; the rules come first
)

const privateRules = "User-agent: *\nDisallow: /private\n"

func newFleetOrigins(t *testing.T) *fleetOrigins {
	t.Helper()
	o := &fleetOrigins{fetches: map[string]int{}, changed: map[string]bool{}, arrived: map[string]chan struct{}{}}
	l, err := net.Listen("tcp4", "0.0.0.0:0") // Linux accepts connections for all of 127.0.0.0/8
	if err != nil {
		t.Fatal(err)
	}
	_, o.port, _ = net.SplitHostPort(l.Addr().String())
	server := httptest.NewUnstartedServer(o)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return o
}

// next returns the URL of an origin that no gate knows.
func (o *fleetOrigins) next(kind int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.given++
	host := fmt.Sprintf("127.%d.%d.%d:%s", 1+o.given/250, 1+o.given%250, kind, o.port)
	o.arrived[host] = make(chan struct{})
	return "http://" + host
}

// fetched returns how often the gates have fetched the robots.txt of an origin.
func (o *fleetOrigins) fetched(origin string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fetches[strings.TrimPrefix(origin, "http://")]
}

// change changes what an origin answers.
func (o *fleetOrigins) change(origin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed[strings.TrimPrefix(origin, "http://")] = true
}

func (o *fleetOrigins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/rules":
		io.WriteString(w, privateRules)
		return
	case "/robots.txt":
	default:
		io.WriteString(w, "page")
		return
	}
	o.mu.Lock()
	o.fetches[r.Host]++
	first, changed := o.fetches[r.Host] == 1, o.changed[r.Host]
	if arrived := o.arrived[r.Host]; first && arrived != nil {
		close(arrived)
	}
	o.mu.Unlock()
	host, _, _ := strings.Cut(r.Host, ":")
	kind, _ := strconv.Atoi(host[strings.LastIndexByte(host, '.')+1:])
	switch {
	case kind == closedOrigin:
		io.WriteString(w, "User-agent: *\nDisallow: /\n")
		return
	case kind == withoutFile:
		http.NotFound(w, r)
		return
	case kind == brokenOrigin || kind == breaking && changed:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case kind == varying:
		w.Header().Set("Vary", "User-Agent")
		if strings.HasPrefix(r.UserAgent(), "EvilBot") {
			io.WriteString(w, "User-agent: *\nAllow: /\n")
			return
		}
	case kind == slowOrigin:
		time.Sleep(500 * time.Millisecond) // real time: the gates are other processes
	case kind == hugeOrigin:
		io.WriteString(w, privateRules+strings.Repeat("# a comment of some length, to fill the file\n", 2<<20/45))
		return
	case kind == largeOrigin:
		io.WriteString(w, strings.Repeat("# a comment of some length, to fill the file\n", 300<<10/45))
	case kind == redirecting:
		http.Redirect(w, r, "/rules", http.StatusFound)
		return
	case kind == hangingOnce && first, kind == hanging:
		<-r.Context().Done()
		return
	}
	io.WriteString(w, privateRules)
	if kind == changing && changed {
		io.WriteString(w, "Disallow: /page\n")
	}
	if kind == pacedOrigin {
		io.WriteString(w, "Crawl-delay: 1\n")
	}
}

// A fleetGate is a gate that may be in a fleet.
type fleetGate struct {
	*gatetest.Gate
	config string // file
	client *http.Client
}

// fleetGateConfig returns the configuration of a gate, with a fleet if it has an address.
func fleetGateConfig(address, key, more string) string {
	config := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\nlog: {audit: audit.jsonl}\negress: {allow_private: [127.0.0.0/8]}\n"
	if address != "" && !strings.Contains(more, "fleet:") {
		config += "fleet: {address: \"" + address + "\", key_file: \"" + key + "\"}\n"
	}
	return config + strings.NewReplacer("ADDRESS", address, "KEY", key).Replace(more)
}

// startFleetGate starts a gate until the test ends. It may be killed.
func startFleetGate(t *testing.T, config string) (*fleetGate, error) {
	g := &fleetGate{config: filepath.Join(t.TempDir(), "gate.yaml")}
	gatetest.Write(t, g.config, config)
	var err error
	errs := new(gatetest.Output)
	if g.Gate, err = gatetest.StartGate(exec.Command("robotsgate", "serve", "-c", g.config), io.Discard, errs); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs)
	}
	proxy, err := url.Parse(g.Proxy)
	if err != nil {
		return nil, err
	}
	g.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 100}}
	t.Cleanup(g.end)
	return g, nil
}

// end ends the gate, if it runs.
func (g *fleetGate) end() {
	g.client.CloseIdleConnections()
	_ = g.Kill() // its error is the signal
}

// startFleet starts gates until the test ends.
func startFleet(t *testing.T, n int, config string) []*fleetGate {
	t.Helper()
	gates := make([]*fleetGate, n)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range gates {
		all.Go(func() { gates[i], errs[i] = startFleetGate(t, config) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return gates
}

// newFleetKey returns a file with a new key for the values of a fleet.
func newFleetKey(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fleet.key")
	if err := os.WriteFile(file, []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An answer is what a gate has answered, without what differs from gate to gate and from time to time.
type answer struct {
	status           int
	decision, source string
	body             string
	took             time.Duration
}

// same is what has to be the same at all gates.
func (a answer) same() string { return fmt.Sprintf("%d %s; %s", a.status, a.decision, a.source) }

var ageOfSource = regexp.MustCompile(`;age=\d+`)

// ask sends a request through a gate.
func (g *fleetGate) ask(ctx context.Context, agent, url string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("User-Agent", agent)
	begin := time.Now()
	resp, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{
		resp.StatusCode, resp.Header.Get("Robots-Gate-Decision"), ageOfSource.ReplaceAllString(resp.Header.Get("Robots-Gate-Source"), ""),
		string(body), time.Since(begin),
	}, err
}

// mustAsk sends a request that has to be answered.
func (g *fleetGate) mustAsk(t *testing.T, url string) answer {
	t.Helper()
	a, err := g.ask(t.Context(), "GoodBot/1.0", url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A fleetStatus is the fleet in /api/overview.
type fleetStatus struct {
	State    string
	Error    string
	Gates    []struct{ ID, Version, Config string }
	Differ   bool `json:"configurations_differ"`
	Calls    int
	Failures int
	Rejected int
}

// status returns what the gate's API says of the fleet.
func (g *fleetGate) status() (fleetStatus, error) {
	var overview struct{ Fleet fleetStatus }
	resp, err := adminClient.Get(g.Admin + "/api/overview")
	if err != nil {
		return fleetStatus{}, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&overview)
	return overview.Fleet, err
}

var adminClient = &http.Client{Timeout: 10 * time.Second}

// sees reports whether the gate is connected, and sees this number of gates.
func (g *fleetGate) sees(gates int) bool {
	s, err := g.status()
	return err == nil && s.State == "connected" && len(s.Gates) == gates
}

// connected reports whether the gate uses the store.
func (g *fleetGate) connected() bool {
	s, err := g.status()
	return err == nil && s.State == "connected"
}

// refresh asks the gate for a new copy of an origin's robots.txt.
func (g *fleetGate) refresh(origin string) error {
	resp, err := adminClient.Post(g.Admin+"/api/refresh?origin="+url.QueryEscape(origin), "", nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return errors.New(resp.Status)
	}
	return nil
}

// run runs a command of robotsgate with the gate's configuration, and returns what it prints.
func (g *fleetGate) run(ctx context.Context, args ...string) (string, error) {
	args = append([]string{args[0], "-c", g.config}, args[1:]...)
	cmd := exec.CommandContext(ctx, "robotsgate", args...)
	cmd.Dir = filepath.Dir(g.config)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// waitFleet waits until all gates are connected and see each other.
func waitFleet(t *testing.T, gates []*fleetGate) {
	t.Helper()
	gatetest.Becomes(t, 30*time.Second, fmt.Sprintf("all of %d gates are connected and see each other", len(gates)), func() bool {
		for _, g := range gates {
			if !g.sees(len(gates)) {
				return false
			}
		}
		return true
	})
}

// A storeClient sends commands to a Redis, over one connection as long as that lasts.
type storeClient struct {
	hostPort string

	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

// do returns the answer to a command: nil, a string, an int64, or a []any of these. An error may be the
// server's. If the connection has ended, do makes another one.
func (c *storeClient) do(args ...string) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.conn != nil
	answer, err := c.try(args)
	if c.conn == nil && used {
		return c.try(args)
	}
	return answer, err
}

// try sends a command once. After an error that is not the server's there is no connection.
func (c *storeClient) try(args []string) (any, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.hostPort, 5*time.Second)
		if err != nil {
			return nil, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(arg), arg)
	}
	c.conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err := io.WriteString(c.conn, text.String())
	var answer any
	if err == nil {
		answer, err = c.read()
	}
	if _, theirs := errors.AsType[storeError](err); err != nil && !theirs {
		c.conn.Close()
		c.conn = nil
	}
	return answer, err
}

// A storeError is an error that the server has answered with.
type storeError string

func (e storeError) Error() string { return string(e) }

func (c *storeClient) read() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil || len(line) < 3 {
		return nil, cmp.Or(err, errors.New("no answer"))
	}
	rest := line[1 : len(line)-2]
	n, _ := strconv.Atoi(rest)
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return nil, storeError(rest)
	case ':':
		return int64(n), nil
	case '$':
		if n < 0 {
			return nil, nil
		}
		data := make([]byte, n+2)
		_, err := io.ReadFull(c.in, data)
		return string(data[:n]), err
	case '*':
		all := []any{}
		for range n {
			one, err := c.read()
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	}
	return nil, fmt.Errorf("answer %q", line)
}

func (c *storeClient) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
