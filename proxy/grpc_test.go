package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"robotsgate/internal/ca"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// framesOf returns the frames of a response on a stream, as one line each, without the gate's own fields and Date.
func framesOf(t *testing.T, f *http2.Framer, stream uint32) (all []string) {
	t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if frame.Header().StreamID != stream {
			continue
		}
		var b strings.Builder
		ended := frame.Header().Flags.Has(http2.FlagDataEndStream) // the same bit in HEADERS
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			b.WriteString("HEADERS")
			for _, x := range frame.Fields {
				if !strings.HasPrefix(x.Name, "robots-gate-") && x.Name != "date" {
					fmt.Fprintf(&b, " %s=%q", x.Name, x.Value)
				}
			}
		case *http2.DataFrame:
			fmt.Fprintf(&b, "DATA %q", frame.Data())
		default:
			continue
		}
		if ended {
			b.WriteString(" END_STREAM")
		}
		if all = append(all, b.String()); ended {
			return all
		}
	}
}

// TestFrames: an HTTP/2 request keeps TE: trailers (RFC 9113, 8.2.2), values lose white space at their ends (8.2.1), and a
// response that ends with its header does so for the client too: gRPC clients report a broken stream otherwise.
func TestFrames(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan string, 100)
	origin, _ := proxytest.StartHTTP2Origin(t, authority, func(f *http2.Framer, r *http2.MetaHeadersFrame) {
		var fields strings.Builder
		for _, x := range r.RegularFields() {
			fmt.Fprintf(&fields, " %s=%q", x.Name, x.Value)
		}
		arrived <- fields.String()
		if r.PseudoValue("path") == "/error" {
			proxytest.WriteHead(f, r.StreamID, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "7")
			return
		}
		proxytest.WriteHead(f, r.StreamID, false, ":status", "200", "content-type", " application/grpc\t")
		f.WriteData(r.StreamID, false, []byte("answer"))
		proxytest.WriteHead(f, r.StreamID, true, "grpc-status", "\t0 ")
	})
	g := proxytest.Start(t, proxytest.Options{Egress: func(e *proxy.Egress) { e.Roots.AddCert(authority.Certificate()) }})
	conn := tls.Client(g.Tunnel(proxytest.Host(origin)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	defer conn.Close()
	io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	f.WriteSettingsAck()
	for i := range 40 {
		path, want := "/error", `HEADERS :status="200" content-type="application/grpc" grpc-status="7" content-length="0" END_STREAM`
		if i%8 == 7 { // every fourth response of the connection was flushed before its end
			path, want = "/answer", `HEADERS :status="200" content-type="application/grpc"|DATA "answer"|HEADERS grpc-status="0" END_STREAM`
		}
		stream := uint32(2*i + 1)
		proxytest.WriteHead(f, stream, true, ":method", "POST", ":scheme", "https", ":authority", proxytest.Host(origin), ":path", path, "te", "trailers", "user-agent", "\tExampleBot ", "x-padded", " a b\t")
		if got := strings.Join(framesOf(t, f, stream), "|"); got != want {
			t.Fatalf("response %d: got %s\nwant %s", i, got, want)
		}
		fields := <-arrived
		for _, want := range []string{` te="trailers"`, ` user-agent="ExampleBot"`, ` x-padded="a b"`} {
			if !strings.Contains(fields, want) {
				t.Fatalf("%s is missing in%s", want, fields)
			}
		}
	}
}
