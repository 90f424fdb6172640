package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/internal/gatetest"
)

// frames opens an HTTP/2 connection in a tunnel and asks for a path on stream 1.
func (w *world) frames(t *testing.T, path string, window uint32) (net.Conn, *http2.Framer) {
	conn := tls.Client(w.tunnel(host(w.https)), &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	f.WriteSettingsAck()
	writeHead(f, 1, true, ":method", "GET", ":scheme", "https", ":authority", host(w.https), ":path", path, "user-agent", "ExampleBot")
	return conn, f
}

// endless writes until it can't.
func endless(rw http.ResponseWriter, r *http.Request) {
	for buf := make([]byte, 64<<10); ; {
		if _, err := rw.Write(buf); err != nil {
			return
		}
	}
}

// An HTTP/2 client that opens its windows wide and does not read its socket.
func TestSocketNotRead(t *testing.T) {
	w := newWorld(t, options{gate: idleAfter(short), handler: endless})
	_, f := w.frames(t, "/", 1<<30)
	f.WriteWindowUpdate(0, 1<<30)
	if x := w.next(t); x.Error == "" {
		t.Errorf("the record says that all went well: %+v", x)
	}
}

// One that keeps its window shut. What is small net/http sends only after the
// exchange.
func TestWindowShut(t *testing.T) {
	w := newWorld(t, options{gate: idleAfter(short)})
	for _, path := range []string{"/private/x", "/small"} {
		conn, f := w.frames(t, path, 0)
		conn.SetReadDeadline(time.Now().Add(patience))
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Errorf("%s: the stream is not ended: %v", path, err)
				break
			}
			if h := frame.Header(); h.Type == http2.FrameRSTStream && h.StreamID == 1 {
				break
			}
		}
	}
}

// An origin that answers while the upload is under way: the answer is whole, and the
// upload goes on.
func TestEarlyAnswer(t *testing.T) {
	const size, piece = 100 << 10, 20 << 10
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(rw)
		control.EnableFullDuplex()
		for range 3 {
			io.WriteString(rw, "more ")
			control.Flush()
			io.CopyN(io.Discard, r.Body, piece)
		}
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(rw, 3*piece+n, err)
	}})
	w.ways(t, func(t *testing.T, v way) {
		for _, length := range []int64{size, -1} {
			body, upload := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.origin+"/", body)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			answered := make(chan struct{})
			go func() {
				defer upload.Close()
				upload.Write(make([]byte, piece))
				<-answered
				for range size/piece - 1 {
					upload.Write(make([]byte, piece))
				}
			}()
			resp, err := v.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			close(answered)
			answer, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if want := fmt.Sprint("more more more ", size, nil); string(answer) != want || err != nil {
				t.Errorf("length %d: got %q, %v, want %q", length, answer, err, want)
			}
		}
	})
}

// The gate's own answer to a request whose body stops is sent at once, or within the header
// time-out if the gate reads the body first, and is never lost.
func TestBodyThatStops(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.HeaderTimeout = short }})
	for _, c := range []struct{ method, target, want string }{
		{"POST", w.http + "/private/", "403"},
		{"POST", "http://user@" + host(w.http) + "/", "400"},
		{"TRACE", w.http + "/", "405"},
		{"POST", w.http + "/" + strings.Repeat("x", maxURL), "414"},
		{"POST", "/", "405"}, // the gate's own page
	} {
		for _, fields := range []string{"Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\nContent-Length: 100\r\n"} {
			wantSoon(t, w.dial(), c.method+" "+c.target+" HTTP/1.1\r\nHost: x\r\nUser-Agent: ExampleBot\r\n"+fields+"\r\n", c.want)
		}
	}
	conn := tls.Client(w.tunnel(host(w.https)), &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1"})
	wantSoon(t, conn, "POST / HTTP/1.1\r\nHost: other.example\r\nContent-Length: 100\r\n\r\nabc", "421")
}

// wantSoon fails unless a request has a whole answer long before the connection's end.
func wantSoon(t *testing.T, conn net.Conn, request, want string) {
	t.Helper()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience / 4))
	io.WriteString(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil || fmt.Sprint(resp.StatusCode) != want {
		t.Errorf("%.60q: got %v, %v, want %s", request, resp, err, want)
	}
}

// An origin that takes a request's head and reads nothing of its body.
func TestOriginDoesNotRead(t *testing.T) {
	o := gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(int, net.Conn, *http.Request) bool {
		<-t.Context().Done()
		return false
	}))
	// Long enough for the robots.txt that comes first, on a busy machine too.
	w := newWorld(t, options{egress: func(e *Egress) { e.DialTimeout, e.ResponseHeaderTimeout = 2*time.Second, 2*time.Second }})
	resp, _ := w.do(http.MethodPost, "http://"+o.Host+"/up", strings.NewReader(strings.Repeat("x", 32<<20)))
	wantStatus(t, resp, 504)
}

// A client may pause in its upload for longer than an origin may take to answer.
func TestPauseInUpload(t *testing.T) {
	w := newWorld(t, options{
		egress: func(e *Egress) { e.DialTimeout, e.ResponseHeaderTimeout = 2*short, 2*short },
		handler: func(rw http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(rw, n, err)
		},
	})
	w.ways(t, func(t *testing.T, v way) {
		body, upload := io.Pipe()
		go func() {
			defer upload.Close()
			for range 2 {
				upload.Write([]byte("half"))
				<-time.After(3 * short)
			}
		}()
		if _, answer := send(t, v.client, http.MethodPost, v.origin+"/", body); answer != "8 <nil>" {
			t.Errorf("got %q", answer)
		}
	})
}

// A client that is answered before the end of its upload may stop that, and read the
// answer, however long it takes.
func TestUploadGivenUp(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.IdleTimeout = short }, handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusUnauthorized)
		for range 2 {
			io.WriteString(rw, "no ")
			http.NewResponseController(rw).Flush()
			<-time.After(3 * short)
		}
	}})
	w.ways(t, func(t *testing.T, v way) {
		body, upload := io.Pipe()
		defer upload.Close()
		go upload.Write(make([]byte, 1000))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.origin+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 2_000_000
		start := time.Now()
		resp, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if answer, err := io.ReadAll(resp.Body); string(answer) != "no no " || err != nil || time.Since(start) > patience/2 {
			t.Errorf("got %q, %v after %v", answer, err, time.Since(start))
		}
	})
}
