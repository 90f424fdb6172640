package audit

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"robotsgate/proxy"
)

// BenchmarkWrite is the cost of an entry: for the request, and for the writer beside it.
func BenchmarkWrite(b *testing.B) {
	l := open(b, Options{Config: Config{File: "-"}}, io.Discard, nil)
	defer l.Close()
	x := &proxy.Record{
		ID: "ID", Start: time.Now(), Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", URL: "http://a.example/private/x?a=1&b", Origin: "http://a.example",
		Crawler: "news", Decision: decided("User-agent: examplebot\nDisallow: /private/\n", "ExampleBot"), Status: 403, Bytes: 7,
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Write(x)
	}
}
