package proxy

import (
	"net/http"
	"strings"
	"testing"
)

// Some clients send an absolute https:// URL in clear to their proxy.
func TestAbsoluteHTTPSInClear(t *testing.T) {
	w := newWorld(t, options{})
	for _, c := range []struct {
		path, want string
	}{{"/open", "200"}, {"/private/", "403"}, {"/robots.txt", "200"}} {
		answer := w.raw("GET " + w.https + c.path + " HTTP/1.1\r\nHost: other.example\r\nUser-Agent: ExampleBot\r\nConnection: close\r\n\r\n")
		if statusOf(answer) != c.want || !strings.Contains(answer, headerSource+`: "`+w.https+"/robots.txt") {
			t.Errorf("%s: got %s, want %s", c.path, answer, c.want)
		}
	}
	wantArrived(t, w, "GET /open")
	if r := w.last(); r.TLS == nil || r.Host != host(w.https) {
		t.Errorf("the origin received Host %q, in TLS: %v", r.Host, r.TLS != nil)
	}
}

// HTTP/1.0 clients are served in clear, without Host.
func TestHTTP10(t *testing.T) {
	w := newWorld(t, options{})
	answer := w.raw("GET " + w.http + "/a HTTP/1.0\r\n\r\n")
	if statusOf(answer) != "200" || !strings.HasSuffix(answer, "\r\n\r\nhello from /a") || strings.Contains(answer, "chunked") {
		t.Errorf("got %s", answer)
	}
	wantArrived(t, w, "GET /a")
}

func TestMethodsThatAreNotServed(t *testing.T) {
	w := newWorld(t, options{})
	for _, request := range []string{
		"OPTIONS * HTTP/1.1\r\nHost: " + host(w.http),
		"TRACE " + w.http + "/ HTTP/1.1\r\nHost: " + host(w.http),
		"TRACE " + w.https + "/ HTTP/1.1\r\nHost: " + host(w.http),
		"TRACE / HTTP/1.1\r\nHost: " + host(w.http),
		"GET * HTTP/1.1\r\nHost: " + host(w.http),
	} {
		answer := w.raw(request + "\r\nConnection: close\r\n\r\n")
		if statusOf(answer) != "405" || !strings.Contains(answer, "\r\nAllow: GET, HEAD") {
			t.Errorf("%q: got %s, want a 405 with Allow", request, answer)
		}
	}
	w.ways(t, func(t *testing.T, v way) {
		resp, _ := send(t, v.client, http.MethodTrace, v.origin+"/", nil)
		wantStatus(t, resp, 405)
		// Any other method is passed on, also one that nobody knows.
		for _, method := range []string{"OPTIONS", "DELETE", "PROPFIND"} {
			resp, _ := send(t, v.client, method, v.origin+"/", nil)
			wantStatus(t, resp, 200)
			resp, _ = send(t, v.client, method, v.origin+"/private/", nil)
			wantStatus(t, resp, 403)
		}
	})
	wantArrived(t, w, strings.Split(strings.Repeat("OPTIONS /,DELETE /,PROPFIND /,", 3), ",")[:9]...)
}

// A request that could be read in two ways is not sent in either.
func TestMalformedRequests(t *testing.T) {
	w := newWorld(t, options{})
	at := host(w.http)
	for _, target := range []string{
		"http://user:pw@" + at + "/",
		"http://user@" + at + "/",
		"http://" + at + "/a#fragment",
		"http://" + at + "/a#",
		"http://" + at + "/a\\b",
		"http://" + at + "/%zz",
		"http://" + at + "/%2",
		"http://" + at + "/a b",
		"http://" + at + "/\x01",
		"http:///a",
		"http://",
		"http:/a",
		"http:a",
		"ftp://" + at + "/",
		"ws://" + at + "/",
		"//" + at + "/../..//",
		"a/b",
		"?q",
		at,
		"http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://2130706433/", "http://127.1/", "http://127.0.0.1.:0x50/", "http://0x7f000001/",
		"http://[127.0.0.1]/", "http://[::1/", "http://::1/", "http://[fe80::1%25lo]/", "http://[::1]x/",
		"http://" + strings.Repeat("a", 64) + ".example/",
		"http://" + strings.Repeat("a.", 127) + "example/",
		"http://a..b/", "http://.a/", "http://a_b..c/", "http://exa%6dple.com/", "http://a,b/", "http://a;b/", "http://a@b@c/", "http://a\\b/", "http://*/",
		"http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/", "http://127.0.0.1:+80/", "http://127.0.0.1:http/", "http://127.0.0.1:80:80/",
	} {
		answer := w.raw("GET " + target + " HTTP/1.1\r\nHost: " + at + "\r\nConnection: close\r\n\r\n")
		want := "400"
		if strings.HasPrefix(target, "//") { // not of an origin: the gate's own
			want = "404"
		}
		if statusOf(answer) != want {
			t.Errorf("%q: got %.200q, want %s", target, answer, want)
		}
		if strings.Contains(answer, headerDecision) {
			t.Errorf("%q: was decided: %s", target, answer)
		}
	}
	if n := w.count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
	// Two spellings of one path are judged as one, and sent as one.
	for target, want := range map[string]string{
		"/private/x":                "403",
		"/open/../private/x":        "403",
		"/%70rivate/x":              "403",
		"/./private/x":              "403",
		"/open/%2e%2e/private/x":    "403",
		"/private/open/../x":        "403",
		"/private/../private/open":  "200",
		"/private/../%6fpen/..//ok": "200",
	} {
		answer := w.raw("GET " + w.http + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if statusOf(answer) != want {
			t.Errorf("%s: got %.200s, want %s", target, answer, want)
		}
	}
	for _, line := range w.arrived() {
		if line != "GET /private/open" && line != "GET //ok" {
			t.Errorf("reached the origin: %s", line)
		}
	}
}

// However a body is framed by the client, the origin gets one request.
func TestRequestFraming(t *testing.T) {
	w := newWorld(t, options{})
	smuggled := "GET /private/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct{ headers, body, want string }{
		{"Content-Length: 3", "abc", "200"},
		{"Content-Length: 3, 3", "abc", "400"},
		{"Content-Length: 3\r\nContent-Length: 4", "abcd", "400"},
		{"Content-Length: -1", "", "400"},
		{"Content-Length: +3", "abc", "400"},
		{"Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n", "200"},
		{"Transfer-Encoding: chunked\r\nContent-Length: 4", "0\r\n\r\n" + smuggled, ""},
		{"Transfer-Encoding: xchunked", "0\r\n\r\n", "501"},
		{"Transfer-Encoding: chunked, identity", "0\r\n\r\n", "501"},
		{"Transfer-Encoding : chunked", "0\r\n\r\n", "400"},
		{"Transfer-Encoding: chunked", "zz\r\n\r\n", ""},
	} {
		answer := w.raw("POST " + w.http + "/post HTTP/1.1\r\nHost: x\r\n" + c.headers + "\r\nConnection: close\r\n\r\n" + c.body)
		if got := statusOf(answer); c.want != "" && got != c.want {
			t.Errorf("%q: got %.200s, want %s", c.headers, answer, c.want)
		}
	}
	for _, line := range w.arrived() {
		if line != "POST /post" {
			t.Errorf("reached the origin: %s", line)
		}
	}
}

// The answer and the log name what was asked for, but no password.
func TestAskedURL(t *testing.T) {
	w := newWorld(t, options{})
	answer := w.raw("GET http://user:secret@origin.example/a?b=@c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if statusOf(answer) != "400" || strings.Contains(answer, "secret") || !strings.Contains(answer, `"url": "http://origin.example/a?b=@c"`) {
		t.Errorf("got %s", answer)
	}
	answer = w.secure(host(w.https), "127.0.0.1", "GET /a HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n")
	if statusOf(answer) != "421" || !strings.Contains(answer, `"url": "https://other.example/a"`) {
		t.Errorf("got %s", answer)
	}
}
