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

// What the gate itself answers to a request whose body stops comes at once, or within
// limits.header_timeout where it is waited for, and is never lost.
func TestBodyThatStops(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.HeaderTimeout = short }})
	for _, c := range []struct{ method, target, host, want string }{
		{"POST", w.http + "/private/", "x", "403"},
		{"POST", "http://user@" + host(w.http) + "/", "x", "400"},
		{"TRACE", w.http + "/", "x", "405"},
		{"POST", w.http + "/" + strings.Repeat("x", maxURL), "x", "414"},
		{"POST", "/", "x", "405"}, // the gate's own page
	} {
		for _, fields := range []string{"Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\nContent-Length: 100\r\n"} {
			start := time.Now()
			answer := w.raw(c.method + " " + c.target + " HTTP/1.1\r\nHost: " + c.host + "\r\nUser-Agent: ExampleBot\r\n" + fields + "\r\n")
			if got := statusOf(answer); got != c.want || time.Since(start) > patience/2 {
				t.Errorf("%s %.40s, %q: got %q after %v, want %s", c.method, c.target, fields, got, time.Since(start), c.want)
			}
		}
	}
	answer := w.secure(host(w.https), "127.0.0.1", "POST / HTTP/1.1\r\nHost: other.example\r\nContent-Length: 100\r\n\r\nabc")
	if statusOf(answer) != "421" {
		t.Errorf("in a tunnel: got %s", answer)
	}
}

// An origin that takes a request's head and reads nothing of its body.
func TestOriginDoesNotRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go func() {
				defer conn.Close()
				r := bufio.NewReaderSize(conn, 16)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if req.URL.Path != "/robots.txt" {
						<-t.Context().Done()
						return
					}
					io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	w := newWorld(t, options{egress: func(e *Egress) { e.DialTimeout, e.ResponseHeaderTimeout = short, short }})
	for _, v := range []way{{"HTTP/1.1", "http://" + l.Addr().String(), w.client()}} {
		resp, _ := send(t, v.client, http.MethodPost, v.origin+"/up", strings.NewReader(strings.Repeat("x", 32<<20)))
		wantStatus(t, resp, 504)
	}
}
