package proxy

import (
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

// The answer and the log name what was asked for, but no password.
func TestAskedURL(t *testing.T) {
	w := newWorld(t, options{})
	answer := w.raw("GET http://user:secret@origin.example/a?b=@c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if statusOf(answer) != "400" || strings.Contains(answer, "secret") || !strings.Contains(answer, `"url": "http://origin.example/a?b=@c"`) {
		t.Errorf("got %s", answer)
	}
	for _, line := range []string{
		"CONNECT user:secret@origin.example:443", "CONNECT secret@origin.example:443", "GET user:secret@origin.example/", "GET http:user:secret@origin.example/",
		`GET http:\\user:secret@origin.example/`, `GET http:/user:secret@origin.example/`, "GET http://us@er:secret@origin.example",
	} {
		answer := w.raw(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if statusOf(answer) != "400" || strings.Contains(answer, "secret") {
			t.Errorf("%s: %s", line, answer)
		}
	}
	w.mu.Lock()
	for _, x := range w.exchanges {
		if strings.Contains(x.URL+x.Error, "secret") {
			t.Errorf("the record says %q, %q", x.URL, x.Error)
		}
	}
	w.mu.Unlock()
	answer = w.secure(host(w.https), "127.0.0.1", "GET /a HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n")
	if statusOf(answer) != "421" || !strings.Contains(answer, `"url": "https://other.example/a"`) {
		t.Errorf("got %s", answer)
	}
}
