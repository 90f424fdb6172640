package audit

import (
	"io"
	"testing"
	"time"

	"robotsgate/internal/record"
)

// BenchmarkWrite is the cost of an entry: for the request, and for the writer beside it.
func BenchmarkWrite(b *testing.B) {
	l := open(b, Options{Config: Config{File: "-"}}, io.Discard, nil)
	defer l.Close()
	x := &record.Record{
		ID: "ID", Time: time.Now(), Client: "192.0.2.1", Method: "GET", Origin: "http://a.example", Path: "/private/x?a=1&b",
		Crawler: "news", Status: 403, Bytes: 7,
	}
	decided("User-agent: examplebot\nDisallow: /private/\n", "ExampleBot").Record(x)
	b.ReportAllocs()
	for b.Loop() {
		l.Write(x)
	}
}
