package origin

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
)

// What is written by hand is what net/http writes for the same request, and what its
// Transport refuses is not written at all.
func TestHeadIsNetHTTPs(t *testing.T) {
	methods := []string{"", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "M-SEARCH"}
	hosts := []string{"a.test", "a.test:8080", "[::1]:80", "127.0.0.1", "A.test", "ü.test", "a b", "[fe80::1%25eth0]", "a_b.test"}
	paths := []url.URL{{Path: "/"}, {}, {Path: "/a b"}, {Path: "/ü"}, {Path: "/a/b", RawPath: "/a%2fb"}, {Path: "/", RawQuery: "q=1&r=%20"}, {Path: "/", ForceQuery: true},
		{Path: "/", RawQuery: "a b"}, {Path: "/", RawQuery: "ü"}, {Path: "*"}, {Path: "//x/y"}, {Opaque: "//a.test/o"}, {Path: "/", RawQuery: "\x01"}, {Path: "/\x7f"}}
	names := []string{"Accept", "Cookie", "X-A", "x-low", "Content-Length", "Transfer-Encoding", "Trailer", "Host", "Connection", "Expect"}
	values := []string{"", "a", " a ", "\ta", "ü", "a, b", "\x7f", "a\nb", "a\rb", "\x00"}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		u := paths[r.IntN(len(paths))]
		u.Scheme, u.Host = "http", "url.test"
		req := &http.Request{Method: methods[r.IntN(len(methods))], URL: &u, Host: hosts[r.IntN(len(hosts))], Header: http.Header{}, Close: r.IntN(10) == 0}
		if r.IntN(2) == 0 {
			req.Body = http.NoBody
		}
		for range r.IntN(4) {
			name := names[r.IntN(len(names))]
			req.Header[name] = append(req.Header[name], values[r.IntN(6)])
		}
		switch r.IntN(4) {
		case 0:
			req.Header["User-Agent"] = []string{""}
		case 1, 2:
			req.Header["User-Agent"] = []string{"Bot/1.0", "Other/2.0"}[:1+r.IntN(2)]
		}
		refused := false
		if r.IntN(5) == 0 {
			req.Header["X-Bad"] = []string{values[r.IntN(len(values))]}
			refused = req.Header["X-Bad"][0] == "\x7f" || req.Header["X-Bad"][0] == "\x00" || req.Header["X-Bad"][0] == "a\nb" || req.Header["X-Bad"][0] == "a\rb"
		}
		if r.IntN(20) == 0 {
			req.Header["bad name"] = []string{"x"}
			refused = true
		}
		var want bytes.Buffer
		wantErr := req.Write(&want)
		got, err := appendRequestHead([]byte("before"), req)
		switch {
		case refused:
			if err == nil {
				t.Fatalf("%q is written", got)
			}
		case (err == nil) != (wantErr == nil):
			t.Fatalf("%v: error %v, want %v", req, err, wantErr)
		case err == nil && string(got) != "before"+want.String():
			t.Fatalf("got\n%q\nwant\n%q", got, "before"+want.String())
		}
	}
}

func BenchmarkHead(b *testing.B) {
	req := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/a/b", RawPath: "/a/b"}, Host: "a.test",
		Header: http.Header{"User-Agent": {"ExampleBot/1.0"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"}}}
	b.Run("ours", func(b *testing.B) {
		buf := make([]byte, 0, 1024)
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = appendRequestHead(buf[:0], req)
		}
	})
	b.Run("net/http", func(b *testing.B) {
		var buf bytes.Buffer
		b.ReportAllocs()
		for b.Loop() {
			buf.Reset()
			req.Write(&buf)
		}
	})
}
