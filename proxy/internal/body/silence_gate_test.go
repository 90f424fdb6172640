package body_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/proxytest"
)

// A client that stops in the middle of its body is answered, and holds neither the
// gate nor the origin.
func TestUploadStalls(t *testing.T) {
	ended := make(chan error, 10)
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.IdleAfter(proxytest.Short), Handler: func(rw http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		body, rest := io.Pipe()
		defer rest.Close()
		defer time.AfterFunc(proxytest.Patience, func() { rest.Close() }).Stop() // if the gate waits for longer, it gets a whole body
		go rest.Write([]byte("the beginning"))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.Origin+"/up", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "ExampleBot/1.0")
		resp, err := v.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		proxytest.WantStatus(t, resp, 408)
		proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=http_request_error")
		if proxytest.Receive(t, ended, "the end of the upload") == nil {
			t.Error("the origin took it for complete")
		}
	})
}

// It is one Read or Write that must not take too long, not the time between them,
// and nothing is left behind on a connection that is net/http's again.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		control := http.NewResponseController(d)
		slow := func(wait time.Duration) readCloser {
			return readCloser{read: func(p []byte) (int, error) { time.Sleep(wait); return len(p), nil }} // fake clock
		}
		upload := func(wait time.Duration) *body.Upload {
			r := httptest.NewRequest(http.MethodPost, "http://origin.example/", slow(wait))
			r.ContentLength = 100
			return body.NewUpload(r, control, time.Minute)
		}
		buf := make([]byte, 1)

		u := upload(50 * time.Second)
		for range 3 {
			u.Read(buf)
			time.Sleep(time.Hour) // fake clock: the origin takes its time
		}
		if synctest.Wait(); !d.read.IsZero() {
			t.Errorf("a client that sends a little every 50 s is cut off after %v", d.read.Sub(start))
		}
		u = upload(70 * time.Second)
		start = time.Now()
		u.Read(buf)
		if synctest.Wait(); d.read.Sub(start) != time.Minute {
			t.Errorf("a client that sends nothing for 70 s is cut off after %v", d.read.Sub(start))
		}
		d.read = time.Time{}
		u = upload(70 * time.Second)
		u.Limit.End()
		u.Read(buf)
		if synctest.Wait(); !d.read.IsZero() {
			t.Error("Transport reads on after the exchange, and moves the deadline of the next one")
		}
	})
}

// An upload waits for an origin that takes its time, however long that is.
func TestSlowOriginOfUpload(t *testing.T) {
	t.Parallel() // it waits most of the time
	const size = 20 << 20
	const idle = time.Second // for the client too, on a busy machine
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.IdleTimeout = idle }, Handler: func(rw http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 64<<10)
		<-time.After(idle * 3 / 2)
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(rw, n+64<<10, err)
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		_, answer := proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/", strings.NewReader(strings.Repeat("x", size)))
		if answer != fmt.Sprint(size, nil) {
			t.Errorf("got %q", answer)
		}
	})
}

// deadlines takes down what is set.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// A WebSocket in which neither side speaks ends; one that breaks off ends at once.
func TestSilentWebSocket(t *testing.T) {
	ended := make(chan error, 1)
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.IdleAfter(proxytest.Short), Handler: func(rw http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nAlt-Svc: h3=\":443\"\r\nContent-Type: text/event-stream\r\n\r\n")
		_, err = io.Copy(io.Discard, buf)
		ended <- cmp.Or(err, io.EOF)
	}})
	conn := g.Dial()
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUser-Agent: ExampleBot\r\n\r\nhello", g.HTTP)
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxytest.WantStatus(t, resp, 101)
	proxytest.WantHeader(t, resp, "Upgrade", "websocket")
	proxytest.WantHeader(t, resp, "Connection", "Upgrade")
	proxytest.WantHeader(t, resp, "Alt-Svc", "")
	proxytest.Receive(t, ended, "the end at the origin")
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client read %q, %v", rest, err)
	}
}

// Transport looks once more at a body that it has sent whole. net/http may have
// closed it by then, and the look must not fail for that.
func TestWholeBodyEndsAfterClose(t *testing.T) {
	closed := false
	below := readCloser{
		read: func(p []byte) (int, error) {
			return copy(p, "four"), map[bool]error{true: http.ErrBodyReadAfterClose}[closed]
		},
		close: func() error { closed = true; return nil },
	}
	r := httptest.NewRequest("POST", "http://origin.example/", below)
	r.ContentLength = 4
	body := body.NewUpload(r, http.NewResponseController(httptest.NewRecorder()), time.Minute)
	buf := make([]byte, 100)
	if n, err := body.Read(buf); n != 4 || err != nil {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	below.Close()
	if n, err := body.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("after the end: got %d bytes, %v, want EOF", n, err)
	}
}

type readCloser struct {
	read  func([]byte) (int, error)
	close func() error
}

func (r readCloser) Read(p []byte) (int, error) { return r.read(p) }

func (r readCloser) Close() error { return r.close() }
