package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// A timedOrigin records when requests arrive, by their User-Agent.
type timedOrigin struct {
	*httptest.Server
	mu     sync.Mutex
	starts []arrival
}

type arrival struct {
	at          time.Time
	path, agent string
}

// newTimedOrigin serves this robots.txt, and at / links to a number of pages.
func newTimedOrigin(t *testing.T, robots string, pages int) *timedOrigin {
	t.Helper()
	o := &timedOrigin{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, robots)
			return
		}
		o.mu.Lock()
		o.starts = append(o.starts, arrival{time.Now(), r.URL.Path, r.UserAgent()})
		o.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/" {
			for i := range pages {
				fmt.Fprintf(w, "<a href=/page/%d>page</a>\n", i)
			}
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

// checkDistances checks that no two requests arrived closer together, but for a fiftieth and what a
// busy machine has added to one of them.
func (o *timedOrigin) checkDistances(t *testing.T, distance, stall time.Duration) {
	t.Helper()
	starts, least := o.arrived(), time.Hour
	for i := 1; i < len(starts); i++ {
		least = min(least, starts[i].at.Sub(starts[i-1].at))
		if d := starts[i].at.Sub(starts[i-1].at); d < distance*49/50-stall {
			t.Errorf("request %d arrived %v after the one before, want %v", i, d, distance)
		}
	}
	t.Logf("no two requests arrived closer together than %v; a goroutine of this process waited for the processor for at most %v", least, stall)
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

// TestPaceScrapy crawls some pages with Scrapy's defaults at an origin with a Crawl-delay: each page once,
// no retry, and no longer than the delays take.
func TestPaceScrapy(t *testing.T) {
	longWithoutRace(t)
	t.Parallel() // it waits most of the time
	gatetest.Needs(t, "scrapy")
	const delay = 500 * time.Millisecond
	pages := gatetest.Size(24, 100)
	origin := newTimedOrigin(t, fmt.Sprintf("User-agent: *\nCrawl-delay: %v\n", delay.Seconds()), pages)
	gate := pacedGate(t, "{crawl_delay: obey}", "")
	dir, stalls := t.TempDir(), measureStalls()
	gatetest.Write(t, filepath.Join(dir, "crawl.py"), `
import scrapy

class Crawl(scrapy.Spider):
    name = "crawl"
    start_urls = ["`+origin.URL+`/"]

    def parse(self, response):
        yield from response.follow_all(css="a")
`)
	cmd := exec.CommandContext(t.Context(), "scrapy", "runspider", "-L", "INFO", "crawl.py")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "http_proxy="+gate.Proxy, "no_proxy=")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("'downloader/response_status_count/200': %d,", pages+1)) || strings.Contains(string(out), "retry/count") {
		t.Errorf("%v:\n%s", err, out)
	}
	origin.checkDistances(t, delay, stalls())
	starts := origin.arrived()
	if len(starts) != pages+1 {
		t.Fatalf("%d requests, want %d", len(starts), pages+1)
	}
	if took, ideal := starts[pages].at.Sub(starts[0].at), time.Duration(pages)*delay; took > ideal*102/100 {
		t.Errorf("the crawl took %v, ideal are %v", took, ideal)
	} else {
		t.Logf("the crawl took %v, ideal are %v", took, ideal)
	}
}

// TestPaceShares: a crawler with 64 connections and one with a single connection have half of the
// starts each.
func TestPaceShares(t *testing.T) {
	gatetest.Long(t)
	origin := newTimedOrigin(t, "", 0)
	gate := pacedGate(t, "{min_delay: 25ms}", "crawlers:\n- {name: many, user_agents: [many]}\n- {name: one, user_agents: [one]}\n")
	proxy, err := url.Parse(gate.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var clients sync.WaitGroup
	for agent, connections := range map[string]int{"many": 64, "one": 1} {
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
		for range connections {
			clients.Go(func() {
				for {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin.URL+"/page", nil)
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("User-Agent", agent)
					resp, err := client.Do(req)
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("%s: %v, %v", agent, resp, err)
						return
					}
					resp.Body.Close()
					select {
					case <-over:
						return
					default:
					}
				}
			})
		}
	}
	time.Sleep(4 * time.Second) // real time: the clients are
	close(over)
	counted := origin.arrived()
	clients.Wait()
	one := 0
	for _, a := range counted {
		if a.agent == "one" {
			one++
		}
	}
	share := float64(one) / float64(len(counted))
	t.Logf("%d requests, of which the crawler with one connection has %.1f%%", len(counted), 100*share)
	if share < 0.45 || share > 0.55 {
		t.Errorf("the crawler with one connection has %.1f%% of %d requests", 100*share, len(counted))
	}
}

// TestPaceClients: what docs/pace.md says of clients that are held, and of those that are refused.
func TestPaceClients(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	var (
		curl    = []string{"curl", "--version"}
		scrapy  = []string{"scrapy", "version"}
		python  = []string{"/usr/bin/python3", "-c", "import httpx, requests"}
		nodeJS  = []string{node(), "testdata/clients/fetch.cjs"}
		undici  = []string{node(), "-e", "require('./testdata/clients/node_modules/undici')"}
		got     = []string{node(), "testdata/clients/got.mjs"}
		crawlee = []string{node(), "testdata/clients/crawlee.mjs"}
	)
	const spent = `{budgets: [{hosts: ["*"], requests: 1, window: 1h}]}` // by the first request
	for _, c := range []struct {
		name, pace string
		works      []string // command that succeeds if the client is installed
		command    string   // run when another request has just started
		want       string   // its output
	}{
		{"curl waits", "{min_delay: 2s}", curl, `curl -s -o /dev/null -w '%{http_code}\n' URL`, "200\n"},
		{"curl retries a 429", "{min_delay: 2s, max_wait: 0s}", curl, `cd "$(mktemp -d)" && curl -s -o page -w '%{http_code}\n' --retry 3 URL`, "200\n"},
		{"curl does not by itself", "{min_delay: 2s, max_wait: 0s}", curl, `curl -s -o /dev/null -w '%{http_code}\n' URL`, "429\n"},
		{"httpx waits for 5 s", "{min_delay: 7s}", python, `/usr/bin/python3 -c 'import httpx
try: print(httpx.get("URL").status_code)
except httpx.ReadTimeout: print("timed out")'`, "timed out\n"},
		{"httpx waits as long as it is told", "{min_delay: 7s}", python, `/usr/bin/python3 -c 'import httpx
print(httpx.get("URL", timeout=30).status_code)'`, "200\n"},
		{"httpx is refused in time", "{min_delay: 7s, max_wait: 4s}", python, `/usr/bin/python3 -c 'import httpx
r = httpx.get("URL"); print(r.status_code, 6 <= int(r.headers["Retry-After"]) <= 8)'`, "429 True\n"},
		{"requests waits", "{min_delay: 7s}", python, `/usr/bin/python3 -c 'import requests
print(requests.get("URL").status_code)'`, "200\n"},
		{"urllib3 retries a 429", "{min_delay: 2s, max_wait: 0s}", python, `/usr/bin/python3 -c 'import requests, urllib3
s = requests.Session(); s.mount("http://", requests.adapters.HTTPAdapter(max_retries=urllib3.Retry(3)))
print(s.get("URL").status_code)'`, "200\n"},
		{"urllib3 by itself retries a 429", "{min_delay: 3s, max_wait: 0s}", python, `/usr/bin/python3 -c 'import os, urllib3
r = urllib3.ProxyManager(os.environ["http_proxy"]).request("GET", "URL"); print(r.status, len(r.retries.history))'`, "200 1\n"},
		{"Scrapy retries twice without waiting", "{min_delay: 1m, max_wait: 0s}", scrapy, `scrapy fetch URL 2>&1 | grep -o "failed 3 times" | head -1`, "failed 3 times\n"},
		{"Scrapy waits", "{min_delay: 7s, max_wait: 150s}", scrapy, `scrapy fetch --nolog --headers URL | grep -c "held=[1-6]" && scrapy settings --get DOWNLOAD_TIMEOUT`, "1\n180\n"},
		{"Scrapy waits for as long as its time-out", "{min_delay: 20s}", scrapy,
			`scrapy fetch -s DOWNLOAD_TIMEOUT=1 URL 2>&1 | grep -o "took longer than 1.0 seconds" | head -1`, "took longer than 1.0 seconds\n"},
		{"Node waits", "{min_delay: 2s}", nodeJS, node() + ` -e 'fetch("URL").then(r => console.log(r.status))'`, "200\n"},
		{"Node does not retry a 429", "{min_delay: 2s, max_wait: 0s}", nodeJS, node() + ` -e 'fetch("URL").then(r => console.log(r.status))'`, "429\n"},
		{"undici waits for 300 s", "{min_delay: 2s}", undici, node() + ` -e 'const c = new (require("./testdata/clients/node_modules/undici").Client)("URL".slice(0, -5))
console.log(Object.getOwnPropertySymbols(c).filter(s => s.description === "headers timeout").map(s => c[s])[0])'`, "300000\n"},
		{"undici waits as long as it is told", "{min_delay: 7s}", undici, node() + ` -e 'const u = require("./testdata/clients/node_modules/undici")
u.setGlobalDispatcher(new u.EnvHttpProxyAgent({ headersTimeout: 1000 }))
u.fetch("URL").catch(e => { console.log(e.cause.code); process.exit() })'`, "UND_ERR_HEADERS_TIMEOUT\n"},
		{"undici retries a 429", "{min_delay: 2s, max_wait: 0s}", undici, node() + ` -e 'const u = require("./testdata/clients/node_modules/undici")
u.setGlobalDispatcher(new u.RetryAgent(new u.EnvHttpProxyAgent()))
u.fetch("URL").then(r => { console.log(r.status); process.exit() })'`, "200\n"},
		{"got waits", "{min_delay: 7s}", got, node() + " testdata/clients/got.mjs URL", "200 after 0 retries\n"},
		{"got retries a 429", "{min_delay: 3s, max_wait: 0s}", got, node() + " testdata/clients/got.mjs URL", "200 after 1 retries\n"}, // so it waits for Retry-After
		{"curl bounds its wait", spent, curl, `curl -s -o /dev/null -w '%{http_code}\n' --retry 3 --retry-max-time 60 URL`, "429\n"},
		{"urllib3 leaves a 429 out", spent, python, `/usr/bin/python3 -c 'import requests, urllib3
s = requests.Session(); s.mount("http://", requests.adapters.HTTPAdapter(max_retries=urllib3.Retry(3, respect_retry_after_header=False)))
print(s.get("URL").status_code)'`, "429\n"},
		{"got bounds its wait", spent, got, node() + ` testdata/clients/got.mjs URL '{"maxRetryAfter": 60000}'`, "429 after 0 retries\n"},
		{"Crawlee waits", "{min_delay: 7s, max_wait: 25s}", crawlee, node() + " testdata/clients/crawlee.mjs URL", "200\n1 attempts of 30 s\n"},
		{"Crawlee gives up", "{min_delay: 40s, max_wait: 60s}", crawlee, node() + ` testdata/clients/crawlee.mjs URL '{"navigationTimeoutSecs": 3}' | tail -n 1`, "4 attempts of 3 s\n"},
		{"Crawlee takes a 429 for a block", "{min_delay: 1m, max_wait: 0s}", crawlee, node() + " testdata/clients/crawlee.mjs URL", "Request blocked - received 429 status code.\n4 attempts of 30 s\n"},
		{"Crawlee takes a 403 for a block", "{min_delay: 1s}", crawlee, node() + " testdata/clients/crawlee.mjs URL/private", "Request blocked - received 403 status code.\n4 attempts of 30 s\n"},
		{"Crawlee handles a 451", "{min_delay: 1s}\ncrawlers: [{name: crawlee, deny_status: 451}]", crawlee, node() + " testdata/clients/crawlee.mjs URL/private", "451\n1 attempts of 30 s\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			if err := exec.Command(c.works[0], c.works[1:]...).Run(); err != nil {
				if c.works[0] == node() {
					t.Skipf("%s: %v: npm has it", c.works, err)
				}
				t.Skipf("%s: %v", c.works, err)
			}
			origin := newTimedOrigin(t, "User-agent: *\nDisallow: /page/private\n", 0)
			gate := pacedGate(t, c.pace, "")
			cmd := exec.CommandContext(t.Context(), "sh", "-c", `curl -s -o /dev/null `+origin.URL+"/first\n"+strings.ReplaceAll(c.command, "URL", origin.URL+"/page"))
			cmd.Env = append(cmd.Environ(), "http_proxy="+gate.Proxy, "no_proxy=", "NO_PROXY=", "NODE_USE_ENV_PROXY=1")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("%v, got %q, want %q", err, out, c.want)
			}
		})
	}
}
