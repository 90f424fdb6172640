package proxy_test

import (
	"strings"
	"testing"

	"robotsgate/proxy/internal/proxytest"
)

// Some clients send an absolute https:// URL in clear to their proxy.
func TestAbsoluteHTTPSInClear(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, c := range []struct {
		path, want string
	}{{"/open", "200"}, {"/private/", "403"}, {"/robots.txt", "200"}} {
		answer := g.Raw("GET " + g.HTTPS + c.path + " HTTP/1.1\r\nHost: other.example\r\nUser-Agent: ExampleBot\r\nConnection: close\r\n\r\n")
		if proxytest.StatusOf(answer) != c.want || !strings.Contains(answer, "Robots-Gate-Source"+`: "`+g.HTTPS+"/robots.txt") {
			t.Errorf("%s: got %s, want %s", c.path, answer, c.want)
		}
	}
	proxytest.WantArrived(t, g, "GET /open")
	if r := g.Last(); r.TLS == nil || r.Host != proxytest.Host(g.HTTPS) {
		t.Errorf("the origin received Host %q, in TLS: %v", r.Host, r.TLS != nil)
	}
}

// The answer and the log name what was asked for, but no password.
func TestAskedURL(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	answer := g.Raw("GET http://user:secret@origin.example/a?b=@c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if proxytest.StatusOf(answer) != "400" || strings.Contains(answer, "secret") || !strings.Contains(answer, `"url": "http://origin.example/a?b=@c"`) {
		t.Errorf("got %s", answer)
	}
	for _, line := range []string{
		"CONNECT user:secret@origin.example:443", "CONNECT secret@origin.example:443", "GET user:secret@origin.example/", "GET http:user:secret@origin.example/",
		`GET http:\\user:secret@origin.example/`, `GET http:/user:secret@origin.example/`, "GET http://us@er:secret@origin.example",
	} {
		answer := g.Raw(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if proxytest.StatusOf(answer) != "400" || strings.Contains(answer, "secret") {
			t.Errorf("%s: %s", line, answer)
		}
	}
	for _, x := range g.Records() {
		if strings.Contains(x.Address()+x.Error, "secret") {
			t.Errorf("the record says %q, %q", x.Address(), x.Error)
		}
	}
	answer = g.Secure(proxytest.Host(g.HTTPS), "127.0.0.1", "GET /a HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n")
	if proxytest.StatusOf(answer) != "421" || !strings.Contains(answer, `"url": "https://other.example/a"`) {
		t.Errorf("got %s", answer)
	}
}
