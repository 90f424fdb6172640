package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/body"
)

// origins runs a test against the origin in clear and the one in TLS: every
// request must be treated alike.
func origins(t *testing.T, w *world, f func(t *testing.T, origin string)) {
	for _, origin := range []string{w.http, w.https} {
		scheme, _, _ := strings.Cut(origin, ":")
		t.Run(scheme, func(t *testing.T) { f(t, origin) })
	}
}

func TestRefusesWhatRobotsDisallows(t *testing.T) {
	w := newWorld(t, options{})
	origins(t, w, func(t *testing.T, origin string) {
		resp, body := w.get(origin + "/private/x")
		wantStatus(t, resp, 403)
		wantHeader(t, resp, "Content-Type", "application/problem+json")
		wantHeader(t, resp, "Cache-Control", "no-store")
		wantHeader(t, resp, "Content-Length", fmt.Sprint(len(body)))
		wantHeader(t, resp, headerDecision, `deny;reason=rule;token="ExampleBot";group="*";line=2;rule="Disallow: /private/"`)
		wantHeader(t, resp, headerSource, `"`+origin+`/robots.txt";status=200;state=fresh;age=0;sha256="`+snapshot.Digest(exampleRobots)+`"`)
		wantHeader(t, resp, headerDelay, "2.5;line=4")
		wantHeader(t, resp, proxyStatus, `robotsgate;error=http_request_denied;details="robots.txt line 2: Disallow: /private/"`)
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
		wantHeader(t, resp, headerID, `"`+doc.ID+`"`)
	})
	wantArrived(t, w)
}

func TestPassesOnWhatIsAllowed(t *testing.T) {
	w := newWorld(t, options{})
	origins(t, w, func(t *testing.T, origin string) {
		resp, body := w.get(origin + "/private/open?q=1")
		wantStatus(t, resp, 200)
		wantHeader(t, resp, headerDecision, `allow;reason=rule;token="ExampleBot";group="*";line=3;rule="Allow: /private/open"`)
		if body != "hello from /private/open?q=1" {
			t.Errorf("body: got %q", body)
		}
	})
	wantArrived(t, w, "GET /private/open?q=1", "GET /private/open?q=1")
}

// The gate adds nothing of its own to a request, and takes away only what is
// meant for the next hop or would mislead the origin.
func TestRequestHeaders(t *testing.T) {
	w := newWorld(t, options{})
	origins(t, w, func(t *testing.T, origin string) {
		hop := []string{"Connection", "close, X-Hop", "X-Hop", "1", "Proxy-Connection", "keep-alive"}
		if origin == w.https {
			hop = nil // HTTP/2 has none, and the client refuses to send them
		}
		w.get(origin+"/", append(hop, "Proxy-Authorization", "Basic eDp5", "X-Original-URL", "/private/", "X-Rewrite-Url", "/private/", "Robots-Gate-Decision", "allow", "X-Kept", "yes", "Accept", "*/*")...)
		h := w.last().Header.Clone()
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
	answer := w.raw("GET " + w.http + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if statusOf(answer) != "200" || len(w.last().Header) > 0 {
		t.Errorf("got %s, the origin received %v", statusOf(answer), w.last().Header)
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
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Robots-Tag", "nofollow, otherbot: noarchive")
		rw.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/gzip" {
			rw.Header().Set("Content-Encoding", "gzip")
			rw.Write(zipped.Bytes())
			return
		}
		io.WriteString(rw, taggedPage)
	}})
	origins(t, w, func(t *testing.T, origin string) {
		resp, body := w.get(origin + "/plain")
		wantHeader(t, resp, headerTags, wantTags)
		wantHeader(t, resp, headerMeta, "complete;bytes=")
		wantHeader(t, resp, "X-Robots-Tag", "nofollow, otherbot: noarchive")
		if body != taggedPage || resp.ContentLength != int64(len(taggedPage)) {
			t.Errorf("body changed: %d bytes, Content-Length %d", len(body), resp.ContentLength)
		}
		resp, body = w.get(origin+"/gzip", "Accept-Encoding", "gzip")
		wantHeader(t, resp, headerTags, wantTags)
		wantHeader(t, resp, "Content-Encoding", "gzip")
		if body != zipped.String() {
			t.Error("the compressed body was not passed on byte for byte")
		}
		resp, _ = w.do(http.MethodHead, origin+"/unseen", nil)
		wantHeader(t, resp, headerMeta, "skipped;why=method")
		wantHeader(t, resp, "Content-Length", fmt.Sprint(len(taggedPage)))
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
		w := newWorld(t, options{handler: handler, gate: func(o *Options) { o.Settings.Tags.HTML = !off }})
		resp, _ := w.get(w.http + "/")
		wantHeader(t, resp, headerMeta, c.want)
	}
}

func TestHeadLimitAndEncoding(t *testing.T) {
	w := newWorld(t, options{
		gate: func(o *Options) { o.Settings.Tags.MaxHeadBytes = 10_000 },
		handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/odd" {
				rw.Header().Set("Content-Encoding", "rot13")
			}
			io.WriteString(rw, `<head><meta name=robots content=noindex><!--`+strings.Repeat("x", 200_000)+`--><meta name=robots content=nofollow>`)
		}})
	resp, body := w.get(w.http + "/")
	wantHeader(t, resp, headerMeta, "partial;why=limit")
	wantHeader(t, resp, headerTags, "noindex;src=meta")
	if len(body) < 200_000 {
		t.Errorf("body: %d bytes", len(body))
	}
	resp, _ = w.get(w.http + "/odd")
	wantHeader(t, resp, headerMeta, "partial;why=encoding")
}

// A slow head is waited for so long and no longer; what had come is counted,
// and the client gets every byte.
func TestSlowHead(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, options{
		gate: func(o *Options) { o.Settings.Tags.HeadTimeout = 50 * time.Millisecond },
		handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			io.WriteString(rw, "<head><meta name=robots content=noindex>")
			rw.(http.Flusher).Flush()
			<-goOn
			io.WriteString(rw, "<title>late</title>")
		}})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", w.http+"/", nil)
	resp, err := w.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	wantHeader(t, resp, headerMeta, "partial;why=timeout")
	wantHeader(t, resp, headerTags, "noindex;src=meta")
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
			w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
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
			origins(t, w, func(t *testing.T, origin string) {
				resp, err := w.client().Get(origin + "/")
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
	w := newWorld(t, options{
		egress: func(e *Egress) { e.ResponseHeaderTimeout = 100 * time.Millisecond },
		handler: func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}})
	origins(t, w, func(t *testing.T, origin string) {
		resp, _ := w.get(origin + "/gone")
		wantStatus(t, resp, 502)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=")
		wantHeader(t, resp, headerDecision, "allow;reason=no-match")
		resp, _ = w.get(origin + "/slow")
		wantStatus(t, resp, 504)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=http_response_timeout")
	})
}

func TestNameThatDoesNotResolve(t *testing.T) {
	w := newWorld(t, options{})
	for _, url := range []string{"http://nothing.invalid/", "https://nothing.invalid/"} {
		resp, _ := w.get(url)
		wantStatus(t, resp, 502)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=dns_error")
		wantHeader(t, resp, headerDecision, "")
	}
}

// An origin that refuses connections has an unreachable robots.txt.
func TestRefusedConnectionIsUnreachable(t *testing.T) {
	w := newWorld(t, options{})
	resp, body := w.get("http://127.0.0.1:1/")
	wantStatus(t, resp, 403)
	wantHeader(t, resp, headerDecision, `deny;reason=unreachable;token="ExampleBot"`)
	wantHeader(t, resp, headerSource, `"http://127.0.0.1:1/robots.txt";state=unreachable;age=0`)
	wantHeader(t, resp, "Retry-After", "5")
	if !strings.Contains(body, "connection refused") {
		t.Errorf("the refusal does not say why: %s", body)
	}
	resp, _ = w.get("http://127.0.0.1:1/robots.txt")
	wantStatus(t, resp, 503)
	wantHeader(t, resp, "Retry-After", "5")
}

func TestRobotsTxtIsTheOneEnforced(t *testing.T) {
	w := newWorld(t, options{})
	origins(t, w, func(t *testing.T, origin string) {
		w.get(origin + "/")
		fetched := len(w.seen)
		resp, body := w.get(origin + "/robots.txt")
		wantStatus(t, resp, 200)
		wantHeader(t, resp, "Content-Type", "text/plain")
		wantHeader(t, resp, headerDecision, "allow;reason=implicit")
		if body != exampleRobots || len(w.seen) != fetched {
			t.Errorf("got %q, with %d requests to the origin", body, len(w.seen)-fetched)
		}
		resp, body = w.do(http.MethodHead, origin+"/robots.txt", nil)
		wantHeader(t, resp, "Content-Length", fmt.Sprint(len(exampleRobots)))
		if body != "" {
			t.Errorf("HEAD with a body: %q", body)
		}
	})
}

func TestOverride(t *testing.T) {
	hosts, err := glob.Host("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{engine: func(c *policy.Config) {
		c.Overrides = []policy.Override{
			{Hosts: []glob.Glob{hosts}, Paths: []string{"/private/a"}, Action: policy.Allow, Reason: "contract 2026-17"},
			{Hosts: []glob.Glob{hosts}, Paths: []string{"/x"}, Reason: "not ours, ü"},
		}
	}})
	resp, _ := w.get(w.https + "/private/a")
	wantStatus(t, resp, 200)
	wantHeader(t, resp, headerDecision, `allow;reason=override;token="ExampleBot";note="contract 2026-17"`)
	wantHeader(t, resp, headerSource, "")
	resp, _ = w.get(w.https + "/x")
	wantStatus(t, resp, 403)
	wantHeader(t, resp, headerDecision, `deny;reason=override;token="ExampleBot";note=%"not ours, %c3%bc"`)
}

// A panickingPacer is a mistake that panics.
type panickingPacer struct{ Pacer }

func (panickingPacer) Wait(context.Context, pace.Request) (*pace.Turn, error) { panic("a mistake") }

func TestPanicCostsOneRequest(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Settings.Pacer = panickingPacer{} }})
	origins(t, w, func(t *testing.T, origin string) {
		for range 2 {
			resp, _ := w.get(origin + "/")
			wantStatus(t, resp, 500)
			wantHeader(t, resp, proxyStatus, "robotsgate;error=proxy_internal_error")
		}
	})
	wantArrived(t, w)
}

func TestThousandFirstRequestsFetchOnce(t *testing.T) {
	w := newWorld(t, options{})
	client := w.client()
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			resp, err := client.Get(fmt.Sprintf("%s/%d", w.http, i))
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			<-w.done
		})
	}
	wg.Wait()
	if fetches := len(w.seen) - len(w.arrived()); fetches != 1 || len(w.arrived()) != 1000 {
		t.Errorf("%d fetches of robots.txt for %d requests, want 1 for 1000", fetches, len(w.arrived()))
	}
}

func TestUploads(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(rw, "%d %v %s", n, err, r.Method)
	}})
	origins(t, w, func(t *testing.T, origin string) {
		_, body := w.do(http.MethodPost, origin+"/", strings.NewReader(strings.Repeat("x", 1<<20)))
		if body != "1048576 <nil> POST" {
			t.Errorf("known length: %s", body)
		}
		_, body = w.do(http.MethodPut, origin+"/", io.MultiReader(strings.NewReader("abc"), strings.NewReader("def")))
		if body != "6 <nil> PUT" {
			t.Errorf("unknown length: %s", body)
		}
		_, body = w.do(http.MethodPost, origin+"/", strings.NewReader("abc"), "Expect", "100-continue")
		if body != "3 <nil> POST" {
			t.Errorf("100-continue: %s", body)
		}
	})
}

func TestTrailers(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "X-Sum, Robots-Gate-Decision")
		io.WriteString(rw, "body")
		rw.Header().Set("X-Sum", "42")
		rw.Header().Set("Robots-Gate-Decision", "allow;reason=forged")
	}})
	origins(t, w, func(t *testing.T, origin string) {
		resp, _ := w.get(origin + "/")
		if resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("Robots-Gate-Decision") != "" {
			t.Errorf("trailers: %v", resp.Trailer)
		}
	})
}

func TestWebSocket(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nRobots-Gate-Decision: forged\r\n\r\n")
		line, _ := buf.ReadString('\n')
		io.WriteString(conn, "echo "+line)
	}})
	handshake := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + host(w.http) + "\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nUser-Agent: ExampleBot\r\n\r\n"
	}
	conn := w.dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(conn, handshake(w.http+"/socket"))
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, resp, 101)
	wantHeader(t, resp, headerDecision, "allow;reason=no-match")
	io.WriteString(conn, "hi\n")
	rest, err := io.ReadAll(r)
	if string(rest) != "echo hi\n" || err != nil { // and the connection ends with the origin's
		t.Errorf("got %q, %v", rest, err)
	}
	if answer := w.raw(handshake(w.http + "/private/socket")[:0] + strings.Replace(handshake(w.http+"/private/socket"), "keep-alive, ", "", 1)); statusOf(answer) != "403" {
		t.Errorf("a disallowed handshake: %s", answer)
	}
}

// Transport looks once more at a body that it has sent whole. net/http may have
// closed it by then, and the look must not fail for that.
func TestWholeBodyEndsAfterClose(t *testing.T) {
	closed := false
	below := readCloser{
		read: func(p []byte) (int, error) {
			return copy(p, "four"), map[bool]error{true: http.ErrBodyReadAfterClose}[closed]
		},
		close: func() error { closed = true; return nil },
	}
	r := httptest.NewRequest("POST", "http://origin.example/", below)
	r.ContentLength = 4
	body := body.NewUpload(r, http.NewResponseController(httptest.NewRecorder()), time.Minute)
	buf := make([]byte, 100)
	if n, err := body.Read(buf); n != 4 || err != nil {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	below.Close()
	if n, err := body.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("after the end: got %d bytes, %v, want EOF", n, err)
	}
}

type readCloser struct {
	read  func([]byte) (int, error)
	close func() error
}

func (r readCloser) Read(p []byte) (int, error) { return r.read(p) }
func (r readCloser) Close() error               { return r.close() }

// Many clients read only when they have sent everything.
func TestRefusedUploadIsReadable(t *testing.T) {
	w := newWorld(t, options{})
	origins(t, w, func(t *testing.T, origin string) {
		resp, body := w.do(http.MethodPost, origin+"/private/", strings.NewReader(strings.Repeat("x", 3<<20)))
		wantStatus(t, resp, 403)
		if !strings.Contains(body, "Disallow: /private/") {
			t.Errorf("got %q", body)
		}
	})
	conn := w.dial() // it writes all, then reads
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/private/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", w.http, 3<<20)
	if _, err := io.WriteString(conn, strings.Repeat("x", 3<<20)); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); statusOf(string(answer)) != "403" || err != nil {
		t.Errorf("got %q, %v", answer, err)
	}
	wantArrived(t, w)
}
