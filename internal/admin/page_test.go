package admin

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"robotsgate/internal/record"
	"robotsgate/policy"
)

// seen returns an overview of requests that have just ended.
func seen(all ...*record.Record) *Overview {
	o := NewOverview()
	for _, x := range all {
		x.Time, x.Duration = time.Now(), 0
		o.Request(x)
	}
	return o
}

func denied(url, pattern string, enforced bool) *record.Record {
	return ended(url, deniedBy(7, pattern, enforced))
}

// text returns the visible text of a page, and all its elements by name.
func text(t *testing.T, page string) (string, map[string][]*html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	elements := map[string][]*html.Node{}
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			words = append(words, strings.Fields(n.Data)...)
		case html.ElementNode:
			elements[n.Data] = append(elements[n.Data], n)
		}
	}
	return strings.Join(words, " "), elements
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(t *testing.T, page string, want ...string) {
	t.Helper()
	got, _ := text(t, page)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is missing in\n%s", w, got)
		}
	}
}

// see gets a page.
func see(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := ask(h, "GET", "192.0.2.1:9310", path)
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || kind != "text/html; charset=utf-8" {
		t.Fatalf("%s: %d, %s: %s", path, w.Code, kind, w.Body)
	}
	return w.Body.String()
}

func TestEmptyPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		h := listener(t, &origin{status: 200, body: rules})
		has(t, see(t, h, "/"), "Ready", "Enforcing", "v1, up 0 s", "No requests yet.", `eval "$(robotsgate env)"`, "http://192.0.2.1:9309",
			"Requests/s 0", "Connections 3 2 tunnels", "Nothing was denied in the last hour.", "Every requested robots.txt could be fetched.",
			"Rules in memory 12 origins 2 KiB of 1 MiB")
		has(t, see(t, listener(t, &origin{}), "/"), "Not ready")
	})
}

// TestPage: the page, the part for its script, and the API show the counts.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{status: 503, crawlers: []*policy.Crawler{{Name: "trial", Mode: policy.Report}}}
		o.seen = seen(denied("http://a.example/x", "/x", true), denied("http://a.example/x", "/x", true), denied("http://b.example/x", "/x", false),
			ended("http://b.example/y", allowed), &record.Record{})
		h := listener(t, o)
		ask(h, "GET", "192.0.2.1:9310", "/api/decision?url=http://down.example/")
		time.Sleep(3 * time.Second) // fake clock
		for _, path := range []string{"/", "/live"} {
			has(t, see(t, h, path), "trial (report mode)", "v1, up 3 s",
				"Allowed 1 Denied 2 by robots.txt, a usage preference or an override Would be denied 1 report mode No decision 1",
				"1 allowed, 2 denied, 1 would be denied. Maximum 4, at 00:00 UTC.",
				"00:00 UTC: 1 allowed, 2 denied, 1 would be denied",
				"UTC Allowed Denied Would be denied Refused by pace or limit No decision 00:00 1 2 1 0 1",
				"Host Denied Would be denied a.example 2 0 b.example 0 1",
				"Disallow: /x http://a.example , line 7 2 1",
				"http://down.example everything is denied the origin answered 503",
				"Since 3 s ago . Failed fetches: 1, the last 3 s ago. Next fetch by a request in 2 s or later .")
		}
		if page := see(t, h, "/"); strings.Contains(page, "No requests yet") {
			t.Error("a gate in use shows how to use it")
		}
		got := answers(t, h, "GET", "/api/overview")
		hour, _ := got["hour"].(map[string]any)
		if got["version"] != "v1" || got["uptime"] != 3. || got["ready"] != true || hour["denied"] != 2. || len(got["minutes"].([]any)) != 60 {
			t.Errorf("the overview is %v", got)
		}
		down := got["unreachable"].([]any)[0].(map[string]any)
		if down["origin"] != "http://down.example" || down["next"] != "2000-01-01T00:00:05Z" || down["meanwhile"] != "unreachable" {
			t.Errorf("unreachable: %v", down)
		}
	})
}

// TestExplain fills in the form.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		o := &origin{status: 200, body: rules, crawlers: []*policy.Crawler{{Name: "trial", Mode: policy.Report, Tokens: []string{"foobot"}}}}
		h := listener(t, o)
		has(t, see(t, h, "/?url=http://a.example/private/x&crawler=default&agent=&token="), "Denied The longest matching rule decides",
			"URL http://a.example/private/x", "Rule line 2: Disallow: /private/", "Lines around it User-agent: * Disallow: /private/ Disallow: /p",
			"Product token none: only the group for * applies", "Group *", "robots.txt fresh, status 200, fetched just now http://a.example/robots.txt")
		page := see(t, h, "/?url=http://a.example/foo&crawler=trial&agent=Foo%22/1&token=")
		has(t, page, "Would be denied; report mode lets the request through", "Product token foobot")
		_, elements := text(t, page)
		for _, in := range elements["input"] {
			if want := map[string]string{"url": "http://a.example/foo", "agent": `Foo"/1`}[attribute(in, "name")]; attribute(in, "value") != want {
				t.Errorf("%s holds %q, want %q", attribute(in, "name"), attribute(in, "value"), want)
			}
		}
		has(t, see(t, h, "/?url=http://a.example/&token=x"), "Allowed No rule of the group matches.")
		o.status = 503
		has(t, see(t, h, "/?url=http://down.example/"), "Denied", "robots.txt unreachable, status 503, last tried just now")
		has(t, see(t, h, "/origin?origin=http://down.example"), "unreachable, status 503, last tried just now")

		w := ask(h, "GET", "192.0.2.1:9310", "/?url=http://a.example/&crawler=unknown")
		if w.Code != http.StatusBadRequest {
			t.Errorf("an unknown crawler: got %d", w.Code)
		}
		has(t, w.Body.String(), `No decision crawler: no crawler is called "unknown"`)
	})
}

// TestCrossSite sends requests as another site's page can: they get no data, and cause no fetch.
func TestCrossSite(t *testing.T) {
	o := &origin{status: 200, body: rules}
	h := listener(t, o)
	for _, path := range []string{"/", "/?url=http://a.example/", "/?url=", "/live", "/api/overview", "/api/refusal?id=x",
		"/api/decision?url=http://a.example/", "/api/robots?origin=http://a.example", "/origin?origin=http://a.example"} {
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "unheard-of"},
			{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "http://192.0.2.1:8080"}, {"Origin", "%"},
		} {
			want := http.StatusForbidden
			if path == "/" { // another site may link to it
				want = http.StatusOK
			}
			if w := ask(h, "GET", "192.0.2.1:9310", path, header...); w.Code != want {
				t.Errorf("%s with %v: got %d, want %d", path, header, w.Code, want)
			}
		}
	}
	if atomic.LoadInt64(&o.fetches) != 0 {
		t.Errorf("%d fetches", atomic.LoadInt64(&o.fetches))
	}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://192.0.2.1:9310"}, {},
	} {
		if w := ask(h, "GET", "192.0.2.1:9310", "/?url=http://a.example/", header...); w.Code != http.StatusOK {
			t.Errorf("%v: got %d", header, w.Code)
		}
	}
}

// TestAbsolute sends absolute URLs, as to a proxy: only that of the listener is served.
func TestAbsolute(t *testing.T) {
	server := httptest.NewServer(listener(t, &origin{status: 200, body: rules}))
	defer server.Close()
	own := strings.TrimPrefix(server.URL, "http://")
	for line, want := range map[string]string{
		"GET http://" + own + "/ HTTP/1.1\r\nHost: " + own:                 "200",
		"GET http://" + own + "/ HTTP/1.1\r\nHost: evil.example":           "200", // RFC 9112, 3.2.2: Host is ignored
		"GET http://evil.example/ HTTP/1.1\r\nHost: " + own:                "403",
		"GET https://" + own + "/ HTTP/1.1\r\nHost: " + own:                "403",
		"GET http://evil.example/api/overview HTTP/1.1\r\nHost: " + own:    "403",
		"GET / HTTP/1.1\r\nHost: evil.example":                             "403",
		"GET / HTTP/1.0":                                                   "403",
		"GET / HTTP/1.1\r\nHost: " + own + "\r\nHost: evil.example":        "400",
		"GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: " + own: "403",
		"GET //evil.example/ HTTP/1.1\r\nHost: evil.example":               "307", // to the clean path, without data
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: " + own:                "405",
	} {
		if got := raw(t, own, line); !strings.HasPrefix(got, "HTTP/1.1 "+want) && !strings.HasPrefix(got, "HTTP/1.0 "+want) {
			t.Errorf("%q: got %.40q, want %s", line, got, want)
		}
	}
}

// hostile are texts that an origin or a client may send.
var hostile = []string{
	`</script><img src=x onerror="document.title='owned'">`,
	`"><svg onload=alert(1)>`,
	`javascript:alert(1)`,
	"\u202egnp.exe\u2066\x1b[2J\x00\xff",
	strings.Repeat("w", 10_000),
	strings.Repeat("<b>", 3000),
}

// TestHostile: with hostile texts the page has the same elements as with harmless ones, and is
// not long.
func TestHostile(t *testing.T) {
	// A URL and a robots.txt with these bytes do not reach the page.
	short := func(text string) string {
		return strings.NewReplacer("\x00", "", "\xff", "", "\x1b", "").Replace(text[:min(len(text), 5000)])
	}
	shape := func(word string) (string, string) {
		o := &origin{status: 200, body: "User-agent: *\nDisallow: /*" + short(word) + "\nDisallow: /\n", crawlers: []*policy.Crawler{{Name: "trial" + word, Mode: policy.Report}}}
		x := denied("http://a.example/", word, false)
		x.Origin, x.Path, x.Robots.URL = "http://"+word, "/", "http://"+word+"/robots.txt"
		o.seen = seen(x, ended("http://b.example/", &policy.Decision{Enforced: true, Reason: policy.ByOverride, Note: word}))
		query := url.Values{"url": {"http://a.example/" + short(word)}, "agent": {word[:min(len(word), 5000)]}, "token": {word[:min(len(word), 5000)]}}
		page := see(t, listener(t, o), "/?"+query.Encode())
		said, elements := text(t, page)
		var count []string
		for _, name := range slices.Sorted(maps.Keys(elements)) {
			count = append(count, fmt.Sprint(name, " ", len(elements[name])))
		}
		if strings.ContainsAny(said, "\u202e\u2066\x1b\x00") {
			t.Errorf("%.60q: the page has invisible characters", word)
		}
		return strings.Join(count, ", "), page
	}
	want, _ := shape("x")
	for _, text := range hostile {
		got, page := shape(text)
		if got != want {
			t.Errorf("%.60q: the page has %s, want %s", text, got, want)
		}
		if len(page) > 100_000 {
			t.Errorf("%.60q: the page has %d bytes", text, len(page))
		}
	}
}

// TestUnprintable: invisible characters are escaped in the API and in the form's fields.
func TestUnprintable(t *testing.T) {
	const hidden = "\u202e\u2066\u2028\u200b\ue000\U000e0041"
	h := listener(t, &origin{status: 200, body: "User-agent: *\nDisallow: /*" + hidden + "\n"})
	target := "http://a.example/x" + hidden
	query := url.Values{"url": {target}, "agent": {"Bot" + hidden}, "token": {"Bot" + hidden}}.Encode()
	for _, c := range []struct{ path, want string }{
		{"/api/decision?" + query, `\u202e\u2066\u2028\u200b\ue000\udb40\udc41`},
		{"/api/robots?origin=http://a.example", `\u202e\u2066\u2028\u200b\ue000\udb40\udc41`},
		{"/api/decision?url=http:" + url.QueryEscape(hidden), `{"error":"url: `},
		{"/?" + query, `value="Bot\u202e\u2066\u2028\u200b\ue000\U000e0041"`},
	} {
		body := ask(h, "GET", "192.0.2.1:9310", c.path).Body.String()
		if !strings.Contains(body, c.want) {
			t.Errorf("%s: no %s in %s", c.path, c.want, body)
		}
		if strings.ContainsAny(body, hidden) {
			t.Errorf("%s: invisible characters in %q", c.path, body)
		}
	}
	if page := see(t, h, "/?"+query); !strings.Contains(page, `value="http://a.example/x%E2%80%AE`) {
		t.Errorf("the form does not hold the URL: %s", page)
	}
}

func TestPageHeaders(t *testing.T) {
	h := listener(t, &origin{status: 200, body: rules})
	for _, host := range []string{"192.0.2.1:9310", "evil.example"} {
		for _, path := range []string{"/", "/live", "/style.css", "/page.js", "/icon.svg", "/api/overview", "/?url=http://a.example/", "/origin?origin=http://a.example"} {
			w := ask(h, "GET", host, path)
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s at %s: %s is %q", path, host, name, got)
				}
			}
			policy := w.Header().Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: Content-Security-Policy: %s", path, policy)
			}
		}
	}
	// The page itself follows the policy.
	_, elements := text(t, see(t, h, "/"))
	for name, all := range elements {
		for _, n := range all {
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") || (a.Key == "src" || a.Key == "href" && name == "link") && !strings.HasPrefix(a.Val, "/") {
					t.Errorf("<%s %s=%q>", name, a.Key, a.Val)
				}
			}
		}
	}
	for _, n := range append(elements["script"], elements["style"]...) {
		if n.FirstChild != nil || attribute(n, "src") == "" {
			t.Errorf("<%s> has something in it", n.Data)
		}
	}
}

// raw sends a request line and a header as they are, and returns the response.
func raw(t *testing.T, address, head string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, head+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
