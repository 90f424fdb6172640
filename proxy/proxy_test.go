package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

func TestRefusesWhatRobotsDisallows(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Origins(t, func(t *testing.T, origin string) {
		resp, body := g.Get(origin + "/private/x")
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantHeader(t, resp, "Content-Type", "application/problem+json")
		proxytest.WantHeader(t, resp, "Cache-Control", "no-store")
		proxytest.WantHeader(t, resp, "Content-Length", fmt.Sprint(len(body)))
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `deny;reason=rule;token="ExampleBot";group="*";line=2;rule="Disallow: /private/"`)
		proxytest.WantHeader(t, resp, "Robots-Gate-Source", `"`+origin+`/robots.txt";status=200;state=fresh;age=0;sha256="`+snapshot.Digest(proxytest.ExampleRobots)+`"`)
		proxytest.WantHeader(t, resp, "Robots-Gate-Delay", "2.5;line=4")
		proxytest.WantHeader(t, resp, "Proxy-Status", `robotsgate;error=http_request_denied;details="robots.txt line 2: Disallow: /private/"`)
		var doc struct {
			Status       int
			URL          string
			ProductToken string `json:"product_token"`
			Reason       string
			Rule         struct {
				Line int
				Text string
			}
			Group  string
			Robots struct {
				URL, State, SHA256 string
				Status             int
			}
			CrawlDelay float64 `json:"crawl_delay"`
			ID         string
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Status != 403 || doc.URL != origin+"/private/x" || doc.ProductToken != "ExampleBot" || doc.Reason != "rule" ||
			doc.Rule.Line != 2 || doc.Rule.Text != "Disallow: /private/" || doc.Group != "*" || doc.CrawlDelay != 2.5 ||
			doc.Robots.URL != origin+"/robots.txt" || doc.Robots.Status != 200 || doc.Robots.State != "fresh" {
			t.Errorf("refusal: got %+v", doc)
		}
		proxytest.WantHeader(t, resp, "Robots-Gate-Id", `"`+doc.ID+`"`)
	})
	proxytest.WantArrived(t, g)
}

func TestPassesOnWhatIsAllowed(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Origins(t, func(t *testing.T, origin string) {
		resp, body := g.Get(origin + "/private/open?q=1")
		proxytest.WantStatus(t, resp, 200)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `allow;reason=rule;token="ExampleBot";group="*";line=3;rule="Allow: /private/open"`)
		if body != "hello from /private/open?q=1" {
			t.Errorf("body: got %q", body)
		}
	})
	proxytest.WantArrived(t, g, "GET /private/open?q=1", "GET /private/open?q=1")
}

// The gate adds nothing of its own to a request, and takes away only what is
// meant for the next hop or would mislead the origin.
func TestRequestHeaders(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Origins(t, func(t *testing.T, origin string) {
		hop := []string{"Connection", "close, X-Hop", "X-Hop", "1", "Proxy-Connection", "keep-alive"}
		if origin == g.HTTPS {
			hop = nil // HTTP/2 has none, and the client refuses to send them
		}
		g.Get(origin+"/", append(hop, "Proxy-Authorization", "Basic eDp5", "X-Original-URL", "/private/", "X-Rewrite-Url", "/private/", "Robots-Gate-Decision", "allow", "X-Kept", "yes", "Accept", "*/*")...)
		h := g.Last().Header.Clone()
		for name, want := range map[string]string{"User-Agent": "ExampleBot/1.0", "X-Kept": "yes", "Accept": "*/*"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			h.Del(name)
		}
		if len(h) > 0 {
			t.Errorf("the origin also received %v", h)
		}
	})
	// A client without a User-Agent stays without one.
	answer := g.Raw("GET " + g.HTTP + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if proxytest.StatusOf(answer) != "200" || len(g.Last().Header) > 0 {
		t.Errorf("got %s, the origin received %v", proxytest.StatusOf(answer), g.Last().Header)
	}
}

// A page with rules for all crawlers, for the crawler, and for another one.
const taggedPage = `<html><head><meta name="robots" content="noindex, max-snippet:20"><meta name="ExampleBot" content="nosnippet">` +
	`<meta name="OtherBot" content="noarchive"></head><body>text</body></html>`

const wantTags = `nofollow;src=x-robots-tag;scope="*", noindex;src=meta;scope="robots", max-snippet;v=20;src=meta;scope="robots", nosnippet;src=meta;scope="ExampleBot"`

func TestAnnotatesTags(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, taggedPage)
	z.Close()
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Robots-Tag", "nofollow, otherbot: noarchive")
		rw.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/gzip" {
			rw.Header().Set("Content-Encoding", "gzip")
			rw.Write(zipped.Bytes())
			return
		}
		io.WriteString(rw, taggedPage)
	}})
	g.Origins(t, func(t *testing.T, origin string) {
		resp, body := g.Get(origin + "/plain")
		proxytest.WantHeader(t, resp, "Robots-Gate-Tags", wantTags)
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "complete;bytes=")
		proxytest.WantHeader(t, resp, "X-Robots-Tag", "nofollow, otherbot: noarchive")
		if body != taggedPage || resp.ContentLength != int64(len(taggedPage)) {
			t.Errorf("body changed: %d bytes, Content-Length %d", len(body), resp.ContentLength)
		}
		resp, body = g.Get(origin+"/gzip", "Accept-Encoding", "gzip")
		proxytest.WantHeader(t, resp, "Robots-Gate-Tags", wantTags)
		proxytest.WantHeader(t, resp, "Content-Encoding", "gzip")
		if body != zipped.String() {
			t.Error("the compressed body was not passed on byte for byte")
		}
		resp, _ = g.Do(http.MethodHead, origin+"/unseen", nil)
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "skipped;why=method")
		proxytest.WantHeader(t, resp, "Content-Length", fmt.Sprint(len(taggedPage)))
	})
}

func TestSkipsWhatHasNoHead(t *testing.T) {
	status, contentType := 200, "text/html"
	var off bool
	handler := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", contentType)
		rw.WriteHeader(status)
	}
	for _, c := range []struct {
		status      int
		contentType string
		off         bool
		want        string
	}{
		{200, "text/html", false, "complete;bytes=0"},
		{404, "text/html; charset=utf-8", false, "complete;bytes=0"},
		{200, "application/xhtml+xml", false, "complete;bytes=0"},
		{200, "image/png", false, "skipped;why=type"},
		{200, "text/event-stream", false, "skipped;why=type"},
		{204, "text/html", false, "skipped;why=status"},
		{206, "text/html", false, "skipped;why=status"},
		{304, "text/html", false, "skipped;why=status"},
		{200, "text/html", true, "skipped;why=off"},
	} {
		status, contentType, off = c.status, c.contentType, c.off
		g := proxytest.Start(t, proxytest.Options{Handler: handler, Proxy: func(o *proxy.Options) { o.Settings.Tags.HTML = !off }})
		resp, _ := g.Get(g.HTTP + "/")
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", c.want)
	}
}

func TestHeadLimitAndEncoding(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Proxy: func(o *proxy.Options) { o.Settings.Tags.MaxHeadBytes = 10_000 },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/odd" {
				rw.Header().Set("Content-Encoding", "rot13")
			}
			io.WriteString(rw, `<head><meta name=robots content=noindex><!--`+strings.Repeat("x", 200_000)+`--><meta name=robots content=nofollow>`)
		}})
	resp, body := g.Get(g.HTTP + "/")
	proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "partial;why=limit")
	proxytest.WantHeader(t, resp, "Robots-Gate-Tags", "noindex;src=meta")
	if len(body) < 200_000 {
		t.Errorf("body: %d bytes", len(body))
	}
	resp, _ = g.Get(g.HTTP + "/odd")
	proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "partial;why=encoding")
}

// A slow head is waited for so long and no longer; what had come is counted,
// and the client gets every byte.
func TestSlowHead(t *testing.T) {
	goOn := make(chan struct{})
	g := proxytest.Start(t, proxytest.Options{
		Proxy: func(o *proxy.Options) { o.Settings.Tags.HeadTimeout = 50 * time.Millisecond },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			io.WriteString(rw, "<head><meta name=robots content=noindex>")
			rw.(http.Flusher).Flush()
			<-goOn
			io.WriteString(rw, "<title>late</title>")
		}})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", g.HTTP+"/", nil)
	resp, err := g.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "partial;why=timeout")
	proxytest.WantHeader(t, resp, "Robots-Gate-Tags", "noindex;src=meta")
	close(goOn)
	body, err := io.ReadAll(resp.Body)
	if string(body) != "<head><meta name=robots content=noindex><title>late</title>" || err != nil {
		t.Errorf("body: got %q, %v", body, err)
	}
}

// Streams arrive as they come, whatever their type and whether or not their
// length is known.
func TestStreamsAreNotDelayed(t *testing.T) {
	for _, contentType := range []string{"text/event-stream", "text/html", "application/octet-stream"} {
		for _, known := range []bool{false, true} {
			next := make(chan struct{})
			g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", contentType)
				if known {
					rw.Header().Set("Content-Length", "18")
				}
				for _, part := range []string{"<p>one", "<p>two", "<p>six"} {
					io.WriteString(rw, part)
					rw.(http.Flusher).Flush()
					<-next
				}
			}})
			g.Origins(t, func(t *testing.T, origin string) {
				resp, err := g.Client().Get(origin + "/")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				part := make([]byte, 6)
				for _, want := range []string{"<p>one", "<p>two", "<p>six"} {
					if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != want {
						t.Fatalf("%s, length known %v: got %q, %v, want %q", contentType, known, part, err, want)
					}
					next <- struct{}{}
				}
			})
		}
	}
}

func TestUpstreamFailures(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Egress: func(e *proxy.Egress) { e.ResponseHeaderTimeout = 100 * time.Millisecond },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}})
	g.Origins(t, func(t *testing.T, origin string) {
		resp, _ := g.Get(origin + "/gone")
		proxytest.WantStatus(t, resp, 502)
		proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=")
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=no-match")
		resp, _ = g.Get(origin + "/slow")
		proxytest.WantStatus(t, resp, 504)
		proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=http_response_timeout")
	})
}

func TestNameThatDoesNotResolve(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, url := range []string{"http://nothing.invalid/", "https://nothing.invalid/"} {
		resp, _ := g.Get(url)
		proxytest.WantStatus(t, resp, 502)
		proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=dns_error")
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "")
	}
}

// An origin that refuses connections has an unreachable robots.txt.
func TestRefusedConnectionIsUnreachable(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	resp, body := g.Get("http://127.0.0.1:1/")
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `deny;reason=unreachable;token="ExampleBot"`)
	proxytest.WantHeader(t, resp, "Robots-Gate-Source", `"http://127.0.0.1:1/robots.txt";state=unreachable;age=0`)
	proxytest.WantHeader(t, resp, "Retry-After", "5")
	if !strings.Contains(body, "connection refused") {
		t.Errorf("the refusal does not say why: %s", body)
	}
	resp, _ = g.Get("http://127.0.0.1:1/robots.txt")
	proxytest.WantStatus(t, resp, 503)
	proxytest.WantHeader(t, resp, "Retry-After", "5")
}

func TestRobotsTxtIsTheOneEnforced(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Origins(t, func(t *testing.T, origin string) {
		g.Get(origin + "/")
		fetched := g.Count()
		resp, body := g.Get(origin + "/robots.txt")
		proxytest.WantStatus(t, resp, 200)
		proxytest.WantHeader(t, resp, "Content-Type", "text/plain")
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=implicit")
		if body != proxytest.ExampleRobots || g.Count() != fetched {
			t.Errorf("got %q, with %d requests to the origin", body, g.Count()-fetched)
		}
		resp, body = g.Do(http.MethodHead, origin+"/robots.txt", nil)
		proxytest.WantHeader(t, resp, "Content-Length", fmt.Sprint(len(proxytest.ExampleRobots)))
		if body != "" {
			t.Errorf("HEAD with a body: %q", body)
		}
	})
}

// TestRobotsTxtCharset: no charset is claimed that the bytes are not in.
func TestRobotsTxtCharset(t *testing.T) {
	for robots, want := range map[string]string{
		"User-agent: *\nDisallow: /gr\u00fc\u00dfe/\n":               "text/plain; charset=utf-8",
		"User-agent: *\nDisallow: /gr\xfc\xdfe/\n":                   "text/plain",
		"\xff\xfeU\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00t\x00": "text/plain",
	} {
		g := proxytest.Start(t, proxytest.Options{Robots: robots})
		resp, body := g.Get(g.HTTP + "/robots.txt")
		if got := resp.Header.Get("Content-Type"); got != want || body != robots {
			t.Errorf("%q: got %q for %q, want %q", robots, got, body, want)
		}
	}
}

func TestOverride(t *testing.T) {
	hosts := proxytest.MustHost(t, "127.0.0.1")
	g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) {
		c.Overrides = []policy.Override{
			{Hosts: []glob.Glob{hosts}, Paths: []string{"/private/a"}, Action: policy.Allow, Reason: "contract 2026-17"},
			{Hosts: []glob.Glob{hosts}, Paths: []string{"/x"}, Reason: "not ours, ü"},
		}
	}})
	resp, _ := g.Get(g.HTTPS + "/private/a")
	proxytest.WantStatus(t, resp, 200)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `allow;reason=override;token="ExampleBot";note="contract 2026-17"`)
	proxytest.WantHeader(t, resp, "Robots-Gate-Source", "")
	resp, _ = g.Get(g.HTTPS + "/x")
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `deny;reason=override;token="ExampleBot";note=%"not ours, %c3%bc"`)
}

// A panickingPacer is a mistake that panics.
type panickingPacer struct{ proxy.Pacer }

func (panickingPacer) Wait(context.Context, pace.Request) (*pace.Turn, error) { panic("a mistake") }

func TestPanicCostsOneRequest(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = panickingPacer{} }})
	g.Origins(t, func(t *testing.T, origin string) {
		for range 2 {
			resp, _ := g.Get(origin + "/")
			proxytest.WantStatus(t, resp, 500)
			proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=proxy_internal_error")
		}
	})
	proxytest.WantArrived(t, g)
}

func TestThousandFirstRequestsFetchOnce(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	client := g.Client()
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			resp, err := client.Get(fmt.Sprintf("%s/%d", g.HTTP, i))
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			<-g.Done
		})
	}
	wg.Wait()
	if fetches := g.Count() - len(g.Arrived()); fetches != 1 || len(g.Arrived()) != 1000 {
		t.Errorf("%d fetches of robots.txt for %d requests, want 1 for 1000", fetches, len(g.Arrived()))
	}
}

func TestUploads(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(rw, "%d %v %s", n, err, r.Method)
	}})
	g.Origins(t, func(t *testing.T, origin string) {
		_, body := g.Do(http.MethodPost, origin+"/", strings.NewReader(strings.Repeat("x", 1<<20)))
		if body != "1048576 <nil> POST" {
			t.Errorf("known length: %s", body)
		}
		_, body = g.Do(http.MethodPut, origin+"/", io.MultiReader(strings.NewReader("abc"), strings.NewReader("def")))
		if body != "6 <nil> PUT" {
			t.Errorf("unknown length: %s", body)
		}
		_, body = g.Do(http.MethodPost, origin+"/", strings.NewReader("abc"), "Expect", "100-continue")
		if body != "3 <nil> POST" {
			t.Errorf("100-continue: %s", body)
		}
	})
}

func TestTrailers(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "X-Sum, Robots-Gate-Decision")
		io.WriteString(rw, "body")
		rw.Header().Set("X-Sum", "42")
		rw.Header().Set("Robots-Gate-Decision", "allow;reason=forged")
	}})
	g.Origins(t, func(t *testing.T, origin string) {
		resp, _ := g.Get(origin + "/")
		if resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("Robots-Gate-Decision") != "" {
			t.Errorf("trailers: %v", resp.Trailer)
		}
	})
}

// echo answers a WebSocket handshake, and then one line.
func echo(rw http.ResponseWriter, _ *http.Request) {
	conn, buf, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nRobots-Gate-Decision: forged\r\n\r\n")
	line, _ := buf.ReadString('\n')
	io.WriteString(conn, "echo "+line)
}

func TestWebSocket(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: echo})
	handshake := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + proxytest.Host(g.HTTP) + "\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nUser-Agent: ExampleBot\r\n\r\n"
	}
	conn := g.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(conn, handshake(g.HTTP+"/socket"))
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxytest.WantStatus(t, resp, 101)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=no-match")
	io.WriteString(conn, "hi\n")
	rest, err := io.ReadAll(r)
	if string(rest) != "echo hi\n" || err != nil { // and the connection ends with the origin's
		t.Errorf("got %q, %v", rest, err)
	}
	if answer := g.Raw(strings.Replace(handshake(g.HTTP+"/private/socket"), "keep-alive, ", "", 1)); proxytest.StatusOf(answer) != "403" {
		t.Errorf("a disallowed handshake: %s", answer)
	}
}

// Many clients read only when they have sent everything.
func TestRefusedUploadIsReadable(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, body := proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/private/", strings.NewReader(strings.Repeat("x", 3<<20)))
		proxytest.WantStatus(t, resp, 403)
		if !strings.Contains(body, "Disallow: /private/") {
			t.Errorf("got %q", body)
		}
		if resp, body = v.Get(t, "/next"); resp.StatusCode != 200 || body != "hello from /next" {
			t.Errorf("the next request: %d, %q", resp.StatusCode, body)
		}
	})
	conn := g.Dial() // it writes all, then reads
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/private/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", g.HTTP, 3<<20)
	if _, err := io.WriteString(conn, strings.Repeat("x", 3<<20)); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); proxytest.StatusOf(string(answer)) != "403" || err != nil {
		t.Errorf("got %q, %v", answer, err)
	}
	proxytest.WantArrived(t, g, "GET /next", "GET /next", "GET /next")
}
