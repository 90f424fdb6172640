package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// A timedOrigin records when requests arrive.
type timedOrigin struct {
	*httptest.Server
	mu     sync.Mutex
	starts []arrival
}

type arrival struct {
	at   time.Time
	path string
}

// newTimedOrigin serves this robots.txt. It answers /busy with 429 and Retry-After: 2.
func newTimedOrigin(t *testing.T, robots string) *timedOrigin {
	t.Helper()
	o := &timedOrigin{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, robots)
			return
		}
		o.mu.Lock()
		o.starts = append(o.starts, arrival{time.Now(), r.URL.Path})
		o.mu.Unlock()
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(o.Close)
	return o
}

// arrived returns the requests so far.
func (o *timedOrigin) arrived() []arrival {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.starts
}

// measureStalls returns a function that ends the measurement of how late a goroutine may be.
func measureStalls() (longest func() time.Duration) {
	over, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		var longest time.Duration
		for last := time.Now(); ; {
			select {
			case <-tick.C:
				now := time.Now()
				longest, last = max(longest, now.Sub(last)-time.Millisecond), now
			case <-over:
				result <- longest
				return
			}
		}
	}()
	return func() time.Duration { close(over); return <-result }
}

// pacedGate runs a gate with these settings of pace.
func pacedGate(t *testing.T, pace, more string) *gatetest.Gate {
	t.Helper()
	return gatetest.Serve(t, t.TempDir(), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {allow_private: [127.0.0.0/8]}\npace: "+pace+"\n"+more)
}

// TestPace: the distances in which requests arrive at an origin, and what the responses say of it. A request that has to
// wait does; without a distance none does.
func TestPace(t *testing.T) {
	longWithoutRace(t)
	const unpaced, second = "User-agent: *\nDisallow: /private/\n", "User-agent: *\nCrawl-delay: 1\n"
	for _, c := range []struct {
		name, pace, robots string
		paths              string        // requested one after the other; those with a + by another crawler
		distance           time.Duration // of all starts, at least; 0: less than a second for all
		last               string        // in the head of the last response
	}{
		{"Crawl-delay", "{crawl_delay: obey}", second, "/a /b /c", time.Second, "Robots-Gate-Delay: 1.0;src=crawl-delay;line=2;held="},
		{"Crawl-delay of all crawlers", "{crawl_delay: obey}", second, "/a +/b /c", time.Second, "Robots-Gate-Delay: 1.0;src=crawl-delay;line=2;held="},
		{"Crawl-delay is only announced", "{crawl_delay: announce}", second, "/a /b /c", 0, "Robots-Gate-Delay: 1.0;line=2\r\n"},
		{"min_delay", "{min_delay: 1s}", unpaced, "/a /b /c", time.Second, "Robots-Gate-Delay: 1.0;src=min-delay;held="},
		{"the larger of both", "{crawl_delay: obey, min_delay: 2s}", second, "/a /b", 2 * time.Second, "Robots-Gate-Delay: 2.0;src=min-delay;held="},
		{"unpaced", "{crawl_delay: obey}", unpaced, "/a /b /c", 0, "200 OK"},
		{"refused", "{crawl_delay: obey, max_wait: 100ms}", "User-agent: *\nCrawl-delay: 50\n", "/a /b", 0, "429 Too Many Requests"},
		{"max_delay", "{crawl_delay: obey, max_delay: 1s, max_wait: 1h}", "User-agent: *\nCrawl-delay: 50\n", "/a /b", 0, "429 Too Many Requests"},
		{"back_off", "{back_off: 1m}", unpaced, "/busy /b", 2 * time.Second, ";src=back-off;held="},
		{"back_off of another product token", "{back_off: 1m}", unpaced, "/busy +/b", 0, "200 OK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			origin := newTimedOrigin(t, c.robots)
			gate := pacedGate(t, c.pace, "crawlers: [{name: other, user_agents: [Other*], product_tokens: [Other]}]\n")
			client, stalls, head := gatetest.Client(t, gate.Proxy), measureStalls(), new(strings.Builder)
			for path := range strings.FieldsSeq(c.paths) {
				path, other := strings.CutPrefix(path, "+")
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if other {
					req.Header.Set("User-Agent", "Other/1.0")
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				head.Reset()
				fmt.Fprintln(head, resp.Status)
				_ = resp.Header.Write(head)
			}
			stall := stalls()
			if !strings.Contains(head.String(), c.last) {
				t.Errorf("the last response has\n%s\nwant %s", head, c.last)
			}
			starts := origin.arrived()
			for i := 1; i < len(starts); i++ {
				if d := starts[i].at.Sub(starts[i-1].at); d < c.distance*49/50-stall || c.distance == 0 && d > time.Second+stall {
					t.Errorf("%s arrived %v after the one before, want %v", starts[i].path, d, c.distance)
				}
			}
		})
	}
}

// TestPaceClients: what docs/pace.md says of clients that are held, and of those that are refused.
func TestPaceClients(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	var (
		curl   = []string{"curl", "--version"}
		scrapy = []string{"scrapy", "version"}
		python = []string{"/usr/bin/python3", "-c", "import httpx, requests"}
		nodeJS = []string{node(), "testdata/clients/fetch.cjs"}
	)
	for _, c := range []struct {
		name, pace string
		works      []string // command that succeeds if the client is installed
		command    string   // run when another request has just started
		want       string   // its output
	}{
		{"curl retries a 429", "{min_delay: 2s, max_wait: 0s}", curl, `cd "$(mktemp -d)" && curl -s -o page -w '%{http_code}\n' --retry 3 URL`, "200\n"},
		{"httpx waits for 5 s", "{min_delay: 40s, max_wait: 1m}", python, `/usr/bin/python3 -c 'import httpx
try: print(httpx.get("URL").status_code)
except httpx.ReadTimeout: print("timed out")'`, "timed out\n"},
		{"requests waits", "{min_delay: 7s}", python, `/usr/bin/python3 -c 'import requests
print(requests.get("URL").status_code)'`, "200\n"},
		{"Scrapy retries twice without waiting", "{min_delay: 1m, max_wait: 0s}", scrapy, `scrapy fetch URL 2>&1 | grep -o "failed 3 times" | head -1`, "failed 3 times\n"},
		{"Scrapy waits", "{min_delay: 20s, max_wait: 150s}", scrapy, `scrapy fetch --nolog --headers URL | grep -c "held=[1-9]" && scrapy settings --get DOWNLOAD_TIMEOUT`, "1\n180\n"},
		{"Node waits", "{min_delay: 2s}", nodeJS, node() + ` -e 'fetch("URL").then(r => console.log(r.status))'`, "200\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			if err := exec.Command(c.works[0], c.works[1:]...).Run(); err != nil {
				t.Skipf("%s: %v", c.works, err)
			}
			origin := newTimedOrigin(t, "")
			gate := pacedGate(t, c.pace, "")
			cmd := exec.CommandContext(t.Context(), "sh", "-c", `curl -s -o /dev/null `+origin.URL+"/first\n"+strings.ReplaceAll(c.command, "URL", origin.URL+"/page"))
			cmd.Env = append(cmd.Environ(), "http_proxy="+gate.Proxy, "no_proxy=", "NO_PROXY=", "NODE_USE_ENV_PROXY=1")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("%v, got %q, want %q", err, out, c.want)
			}
		})
	}
}
