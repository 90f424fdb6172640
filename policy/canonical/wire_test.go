package canonical

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// wire returns what net/http sends for a URL: the request line's target, and Host.
func wire(u *url.URL) (uri, host string, err error) {
	var b strings.Builder
	if err := (&http.Request{Method: "GET", URL: u, Header: http.Header{"User-Agent": {""}}}).Write(&b); err != nil {
		return "", "", err
	}
	line, rest, _ := strings.Cut(b.String(), "\r\n")
	line = strings.TrimPrefix(line, "GET ")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\n" + rest)))
	if err != nil {
		return "", "", err
	}
	return strings.TrimSuffix(line, " HTTP/1.1"), r.Host, nil
}

// FuzzTarget: the canonical form of a canonical form is the same, and it is what net/http sends.
func FuzzTarget(f *testing.F) {
	for _, raw := range []string{
		"http://example.com/a/../b?c=d", "https://EXAMPLE.com.:0443//x/%2e%2E/?", "http://[::FFFF:1.2.3.4]:81/.//a",
		"https://bücher.example/é|\"?é\\", "http://a/%7e%2f;x=[1]*'()!?$&@:", "http://1.2.3.4/?", "http://a//", "http://a/*", "http://a/:",
	} {
		scheme, rest, _ := strings.Cut(raw, "://")
		i := strings.IndexByte(rest, '/')
		f.Add(scheme, rest[:i], rest[i:])
	}
	f.Fuzz(func(t *testing.T, scheme, authority, uri string) {
		ReadURL(scheme + "://" + authority + uri)
		target, err := ParseTarget(scheme, authority, uri)
		if err != nil {
			if target != (Target{}) {
				t.Errorf("an error, and %+v", target)
			}
			return
		}
		again, err := ParseTarget(target.Scheme, target.Host, target.Path)
		if err != nil || again != target {
			t.Errorf("%+v becomes %+v, %v", target, again, err)
		}
		if parsed, err := ParseURL(target.String()); err != nil || parsed != target {
			t.Errorf("%s is read as %+v, %v", target, parsed, err)
		}
		u := target.URL()
		if u.String() != target.String() && !strings.HasPrefix(target.Path, "//") {
			t.Errorf("%s: as a URL %s", target, u)
		}
		if u.Hostname() != target.Hostname() {
			t.Errorf("%s: host %q, want %q", target, u.Hostname(), target.Hostname())
		}
		path, host, err := wire(u)
		if err != nil || path != target.Path || host != target.Host {
			t.Errorf("%s: sent %q to %q, %v", target, path, host, err)
		}
	})
}
