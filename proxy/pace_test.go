package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A testPacer lets the test decide each request's turn.
type testPacer struct {
	free    *pace.Pacer       // delays no request
	waiting chan pace.Request // receives each request when it begins to wait
	turn    chan error        // what Wait returns
}

func newTestPacer() *testPacer { return newTestPacerWith(pace.Config{}) }

func newTestPacerWith(c pace.Config) *testPacer {
	return &testPacer{free: pace.New(c, nil), waiting: make(chan pace.Request, 1), turn: make(chan error)}
}

func (p *testPacer) Wait(ctx context.Context, r pace.Request) (*pace.Turn, error) {
	p.waiting <- r
	select {
	case err := <-p.turn:
		if err != nil {
			return nil, err
		}
		return p.free.Wait(ctx, r)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *testPacer) Observe(r pace.Request) (*pace.Turn, error) {
	p.waiting <- r
	turn, _ := p.free.Observe(r)
	turn.Held = 1500 * time.Millisecond
	return turn, <-p.turn
}

// An allowed request waits for its turn before anything is sent.
func TestPacer(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		before := len(g.Arrived())
		got := make(chan *http.Response, 1)
		go func() {
			resp, err := v.Client.Get(v.Origin + "/page")
			if err != nil {
				t.Error(err)
			}
			got <- resp
		}()
		if r := proxytest.Receive(t, pacer.waiting, "the request's wait"); r.Origin != v.Origin || r.Crawler != "default" || r.CrawlDelay != 2500*time.Millisecond || r.Subresource {
			t.Errorf("waiting: %+v", r)
		}
		if n := len(g.Arrived()); n != before {
			t.Error("the request was sent before its turn")
		}
		pacer.turn <- nil
		resp := proxytest.Receive(t, got, "the response")
		resp.Body.Close()
		proxytest.WantStatus(t, resp, 200)
		g.Next(t)
	})
}

// A passthrough tunnel waits for its turn too.
func TestPacerHoldsTunnel(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Robots: "# nothing\n", Proxy: func(o *proxy.Options) { proxytest.PassThrough(o); o.Settings.Pacer = pacer }})
	got := make(chan *http.Response, 1)
	go func() {
		_, resp := g.ConnectTo(t, proxytest.Host(g.HTTPS), "User-Agent: ExampleBot/1.0")
		got <- resp
	}()
	proxytest.Receive(t, pacer.waiting, "the tunnel's wait")
	select {
	case resp := <-got:
		t.Fatalf("answered %d before its turn", resp.StatusCode)
	default:
	}
	pacer.turn <- nil
	proxytest.WantStatus(t, proxytest.Receive(t, got, "the answer to CONNECT"), 200)
}

const pacedRobots = "User-agent: *\nDisallow: /x/\nCrawl-delay: 2\n\nUser-agent: ExampleBot\nUser-agent: Other\nCrawl-delay: 1.5\n" +
	"Disallow: /private/\n\nUser-agent: Slow\nDisallow: /x/\nCrawl-delay: 30\n"

// The pacer gets the crawler's Crawl-delay, and the longest one of any group. The header names what has set the pace.
func TestPaceRequests(t *testing.T) {
	asked := pace.Request{CrawlDelay: 1500 * time.Millisecond, LongestDelay: 30 * time.Second}
	for name, c := range map[string]struct {
		pace   pace.Config
		robots string
		want   pace.Request
		header string
	}{
		"obeyed":             {pace.Config{CrawlDelay: pace.Obey}, pacedRobots, asked, "1.5;src=crawl-delay;line=7;held=0.0"},
		"longer":             {pace.Config{CrawlDelay: pace.Obey, MinDelay: time.Second}, pacedRobots, asked, "1.5;src=crawl-delay;line=7;held=0.0"},
		"shorter":            {pace.Config{CrawlDelay: pace.Obey, MinDelay: 3 * time.Second}, pacedRobots, asked, "3.0;src=min-delay;held=0.0"},
		"announced":          {pace.Config{}, pacedRobots, asked, "1.5;line=7"},
		"announced, shorter": {pace.Config{MinDelay: 3 * time.Second}, pacedRobots, asked, "3.0;src=min-delay;held=0.0"},
		"announced, longer":  {pace.Config{MinDelay: time.Second}, pacedRobots, asked, "1.5;line=7"},
		"announced, equal":   {pace.Config{MinDelay: 1500 * time.Millisecond}, pacedRobots, asked, "1.5;line=7"},
		"only a minimum":     {pace.Config{MinDelay: 3 * time.Second}, "# nothing\n", pace.Request{}, "3.0;src=min-delay;held=0.0"},
		"none":               {pace.Config{CrawlDelay: pace.Obey}, "# nothing\n", pace.Request{}, ""},
		"zero":               {pace.Config{CrawlDelay: pace.Obey}, "User-agent: *\nCrawl-delay: 0\n", pace.Request{}, "0.0;line=2"},
		"absurd": {pace.Config{CrawlDelay: pace.Obey}, "User-agent: *\nCrawl-delay: 999999999999999999999\n",
			pace.Request{CrawlDelay: 1e9 * time.Second, LongestDelay: 1e9 * time.Second}, "1000000000.0;src=crawl-delay;line=2;held=0.0"},
		"invalid": {pace.Config{CrawlDelay: pace.Obey}, "User-agent: *\nCrawl-delay: -5\nCrawl-delay: soon\nCrawl-delay: 1e9\n", pace.Request{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pacer := newTestPacerWith(c.pace)
			g := proxytest.Start(t, proxytest.Options{Robots: c.robots, Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
			go func() {
				got := <-pacer.waiting
				if got.CrawlDelay != c.want.CrawlDelay || got.LongestDelay != c.want.LongestDelay || !got.Fetched {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
				pacer.turn <- nil
			}()
			resp, _ := g.Get(g.HTTP + "/page")
			proxytest.WantStatus(t, resp, 200)
			if got := resp.Header.Get("Robots-Gate-Delay"); got != c.header {
				t.Errorf("Robots-Gate-Delay: %q, want %q", got, c.header)
			}
		})
	}
}

// An error refuses the request; TooLate says when to try again. The decision stays.
func TestPacerRefuses(t *testing.T) {
	pacer := newTestPacerWith(pace.Config{CrawlDelay: pace.Obey})
	g := proxytest.Start(t, proxytest.Options{Robots: pacedRobots, Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
	asked := pace.Distance{Interval: 1500 * time.Millisecond, By: pace.ByCrawlDelay}
	for _, c := range []struct {
		err     error
		status  int
		kind    string
		refused record.Refusal
		header  string // its beginning
		says    string
	}{
		{&pace.TooLate{After: 90 * time.Second, By: pace.ByInterval, Distance: asked}, 429, "pace", record.ByPace, "1.5;src=crawl-delay;line=7;retry=9", "Line 7 of "},
		{&pace.TooLate{After: 90 * time.Second, By: pace.ByPause, Distance: asked}, 429, "pace", record.ByPace, "90.0;src=back-off;retry=9", "429 or 503"},
		{&pace.TooLate{After: 90 * time.Second, By: pace.ByInterval, Full: true, Distance: asked}, 429, "pace", record.ByPace, "1.5;src=crawl-delay;line=7;retry=9", "As many requests wait"},
		{
			&pace.TooLate{After: 90 * time.Second, By: pace.ByBudget, Distance: asked, Limit: pace.Limit{Key: "a", Starts: 100, Window: time.Hour, Entry: 3}},
			429, "budget", record.ByBudget, "1.5;line=7", "at most 100 requests of this crawler to 127.0.0.1 in 1h (pace.budgets, entry 3). Try again in 1m3",
		},
		{pace.ErrClosed, 503, "ending", record.ByPace, "1.5;line=7", "about to end"},
		{errors.New("out of order"), 502, "", "", "1.5;line=7", ""},
	} {
		go func() {
			<-pacer.waiting
			pacer.turn <- c.err
		}()
		resp, body := g.Get(g.HTTP + "/page")
		proxytest.WantStatus(t, resp, c.status)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;")
		proxytest.WantHeader(t, resp, "Robots-Gate-Delay", c.header)
		if !strings.Contains(body, c.says) || c.kind != "" && !strings.Contains(body, `"urn:robotsgate:`+c.kind+`"`) {
			t.Errorf("%v: the body is %s", c.err, body)
		}
		if got := resp.Header.Get("Retry-After"); c.status == 429 && (got < "90" || got > "99") {
			t.Errorf("%v: Retry-After is %q, want 90 to 99", c.err, got)
		}
		if x := g.Next(t); x.Error != c.err.Error() || x.Refused != c.refused {
			t.Errorf("%v: the record has the error %q and is refused by %q", c.err, x.Error, x.Refused)
		}
	}
	proxytest.WantArrived(t, g)
}

// In report mode nothing is held or refused.
func TestPaceReported(t *testing.T) {
	pacer := newTestPacerWith(pace.Config{CrawlDelay: pace.Obey})
	g := proxytest.Start(t, proxytest.Options{Robots: pacedRobots, Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer },
		Engine: func(c *policy.Config) { c.Crawlers.Default.Mode = policy.Report }})
	for _, c := range []struct {
		err    error
		header string
	}{
		{nil, "1.5;src=crawl-delay;line=7;would-hold=1.5"},
		{&pace.TooLate{After: time.Minute}, "1.5;src=crawl-delay;line=7;would-refuse"},
	} {
		go func() {
			<-pacer.waiting
			pacer.turn <- c.err
		}()
		resp, _ := g.Get(g.HTTP + "/page")
		proxytest.WantStatus(t, resp, 200)
		if got := resp.Header.Get("Robots-Gate-Delay"); got != c.header {
			t.Errorf("got %q, want %q", got, c.header)
		}
		if x := g.Next(t); x.Paced.Held != 0 || x.Refused != "" {
			t.Errorf("record: %+v", x.Paced)
		}
	}
}

// In report mode, too, the header of a request that has no distance to keep says what robots.txt asks for.
func TestPaceReportedWithoutDistance(t *testing.T) {
	pacer := pace.New(pace.Config{BackOff: time.Minute}, nil)
	defer pacer.Close()
	g := proxytest.Start(t, proxytest.Options{Robots: pacedRobots, Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer },
		Engine: func(c *policy.Config) { c.Crawlers.Default.Mode = policy.Report }})
	resp, _ := g.Get(g.HTTP + "/page")
	proxytest.WantHeader(t, resp, "Robots-Gate-Delay", "1.5;line=7")
}

// Parts of a page neither wait nor count if they are free. Other requests do, and here they come too early.
func TestFreeSubresources(t *testing.T) {
	pacer := pace.New(pace.Config{Subresources: pace.Free, MinDelay: time.Hour, MaxDelay: time.Hour}, nil)
	defer pacer.Close()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
	resp, _ := g.Get(g.HTTP + "/page")
	proxytest.WantStatus(t, resp, 200)
	for kind, free := range map[string]bool{"": false, "document": false, "iframe": false, "frame": false, "empty": false, "image": true, "script": true, "style": true, "video": true} {
		want, header := 429, "3600.0;src=min-delay;retry="
		if free {
			want, header = 200, "2.5;line=4" // as without a pace
		}
		resp, _ := g.Get(g.HTTP+"/page", "Sec-Fetch-Dest", kind)
		proxytest.WantStatus(t, resp, want)
		if got := resp.Header.Get("Robots-Gate-Delay"); !strings.HasPrefix(got, header) {
			t.Errorf("%q: Robots-Gate-Delay: %q", kind, got)
		}
	}
}

// An origin's 429 pauses the requests of its crawler, whatever becomes of the response.
func TestBackOff(t *testing.T) {
	pacer := pace.New(pace.Config{MaxWait: time.Second, BackOff: time.Minute}, nil)
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }, Handler: func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "40")
		rw.WriteHeader(http.StatusTooManyRequests)
	}})
	resp, _ := g.Get(g.HTTP + "/page")
	proxytest.WantStatus(t, resp, 429)
	if got := resp.Header.Get("Proxy-Status"); strings.Contains(got, "robotsgate") {
		t.Errorf("the origin's own answer is said to be the gate's: %s", got)
	}
	resp, _ = g.Get(g.HTTP + "/page")
	proxytest.WantStatus(t, resp, 429)
	if got := resp.Header.Get("Robots-Gate-Delay"); !strings.Contains(got, ";src=back-off;retry=") {
		t.Errorf("Robots-Gate-Delay: %q", got)
	}
	if len(g.Arrived()) != 1 {
		t.Error("the second request has reached the origin")
	}
}

// A client that disconnects gives its place up.
func TestPacerClientLeaves(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
	conn := g.Dial()
	conn.Write([]byte("GET " + g.HTTP + "/page HTTP/1.1\r\nHost: x\r\n\r\n"))
	proxytest.Receive(t, pacer.waiting, "the request's wait")
	conn.Close()
	if x := g.Next(t); x.Stages.Sent != 0 || x.Error == "" {
		t.Errorf("record: sent after %v, error %q", x.Stages.Sent, x.Error)
	}
	proxytest.WantArrived(t, g)
}

// A client that waits for 100 Continue gets it after its turn, since the body is of no use before.
func TestPacerExpect(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }, Handler: func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}})
	conn := g.Dial()
	fmt.Fprintf(conn, "POST %s/page HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", g.HTTP)
	proxytest.Receive(t, pacer.waiting, "the request's wait")
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before its turn the client reads %d bytes, %v", n, err)
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	pacer.turn <- nil
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Errorf("after its turn the client reads %q, %v", line, err)
	}
	r.ReadString('\n')
	io.WriteString(conn, "body")
	if line, err := r.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("after its body the client reads %q, %v", line, err)
	}
}

// What the gate answers itself does not wait.
func TestPacerLeavesOwnAnswersAlone(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = newTestPacer() }})
	for path, status := range map[string]int{"/robots.txt": 200, "/private/": 403} {
		resp, _ := g.Get(g.HTTP + path)
		proxytest.WantStatus(t, resp, status)
	}
}

// A held request of a client that disconnects frees its place within 10 ms, on every way. The fastest of
// some counts, since the machine may be busy.
func TestHangUp(t *testing.T) {
	pacer := pace.New(pace.Config{MinDelay: time.Hour, MaxDelay: time.Hour, MaxWait: time.Hour, MaxQueue: 10}, nil)
	defer pacer.Close()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
	waits := func(n int) (took time.Duration) {
		t.Helper()
		for begun := time.Now(); took < 10*time.Second; time.Sleep(100 * time.Microsecond) { // real time: it is measured
			took = time.Since(begun)
			if pacer.Waiting() == n {
				return took
			}
		}
		t.Fatalf("not %d requests wait after %v", n, took)
		return took
	}
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		pacer.Observe(pace.Request{Origin: v.Origin}) // a request has just started
		fastest := time.Hour
		for range 10 {
			ctx, hangUp := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.Origin+"/page", nil)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if resp, err := v.Client.Do(req); err == nil {
					resp.Body.Close()
					// The gate may answer between the end of TLS and that of the connection.
					if resp.StatusCode == http.StatusOK {
						t.Error("the request was not held")
					}
				}
			}()
			waits(1)
			hangUp()
			fastest = min(fastest, waits(0))
			<-ended
		}
		t.Logf("a place is free after %v", fastest)
		if fastest > 10*time.Millisecond {
			t.Errorf("a place is free after %v", fastest)
		}
	})
}

// A client that is held gets answers to its HTTP/2 PINGs, and keeps its connection.
func TestPingWhileHeld(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = pacer }})
	client := g.ClientVia("http", g.Addr, true)
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond, PingTimeout: 5 * time.Second}
	got := make(chan error, 1)
	go func() {
		resp, err := client.Get(g.HTTPS + "/page")
		if err == nil {
			resp.Body.Close()
		}
		got <- err
	}()
	proxytest.Receive(t, pacer.waiting, "the request's wait")
	select {
	case err := <-got:
		t.Fatalf("the client has not waited: %v", err)
	case <-time.After(500 * time.Millisecond): // some 25 PINGs
	}
	pacer.turn <- nil
	if err := proxytest.Receive(t, got, "the response"); err != nil {
		t.Error(err)
	}
}

// A panickingUpstream is one with a mistake: it panics at a path.
type panickingUpstream struct{ proxy.Upstream }

func (u panickingUpstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/panic" {
		panic("a mistake")
	}
	return u.Upstream.RoundTrip(r)
}

// A request that panics gives its turn back: the one that ends a pause does not leave the others waiting.
func TestPanicGivesTurnBack(t *testing.T) {
	pacer := pace.New(pace.Config{MaxWait: 10 * time.Second, MaxQueue: 10, BackOff: time.Minute}, nil)
	g := proxytest.Start(t, proxytest.Options{
		Proxy:    func(o *proxy.Options) { o.Settings.Pacer = pacer },
		Upstream: func(u proxy.Upstream) proxy.Upstream { return panickingUpstream{u} },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/busy" {
				rw.Header().Set("Retry-After", "1")
				rw.WriteHeader(http.StatusTooManyRequests)
			}
		},
	})
	for _, c := range []struct {
		path   string
		status int
	}{{"/busy", 429}, {"/panic", 500}, {"/page", 200}} { // the second waits for the end of the pause
		resp, _ := g.Get(g.HTTP + c.path)
		proxytest.WantStatus(t, resp, c.status)
		if held := g.Next(t).Paced.Held; c.path == "/page" && held > 0 {
			t.Errorf("it was held for %v", held)
		}
	}
}
