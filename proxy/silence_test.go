package proxy

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"robotsgate/proxy/internal/body"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const short = 200 * time.Millisecond

func idleAfter(d time.Duration) func(*Options) {
	return func(o *Options) { o.Limits.IdleTimeout, o.Silence = d, d }
}

// A client that stops in the middle of its body is answered, and holds neither the
// gate nor the origin.
func TestUploadStalls(t *testing.T) {
	ended := make(chan error, 10)
	w := newWorld(t, options{gate: idleAfter(short), handler: func(rw http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	}})
	w.ways(t, func(t *testing.T, v way) {
		body, rest := io.Pipe()
		defer rest.Close()
		defer time.AfterFunc(patience, func() { rest.Close() }).Stop() // if the gate waits for longer, it gets a whole body
		go rest.Write([]byte("the beginning"))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.origin+"/up", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "ExampleBot/1.0")
		resp, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		wantStatus(t, resp, 408)
		wantHeader(t, resp, "Proxy-Status", "robotsgate;error=http_request_error")
		if receive(t, ended, "the end of the upload") == nil {
			t.Error("the origin took it for complete")
		}
	})
}

// The same if the body is not read: net/http reads it to its end before it answers.
func TestUnreadBodyStalls(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) {
		o.Limits.IdleTimeout, o.Limits.HeaderTimeout = short, short
	}})
	for target, want := range map[string]string{
		w.http + "/private/": "403",
		w.http + "/%":        "400",
		"/":                  "405", // the gate's own page
	} {
		answer := w.raw("POST " + target + " HTTP/1.1\r\nHost: x\r\nUser-Agent: ExampleBot\r\nContent-Length: 100\r\n\r\nthe beginning")
		if got := statusOf(answer); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

// A client that does not read its response is cut off.
func TestResponseNotRead(t *testing.T) {
	ended := make(chan struct{}, 10)
	w := newWorld(t, options{gate: idleAfter(short), handler: func(rw http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		for buf := make([]byte, 64<<10); ; {
			if _, err := rw.Write(buf); err != nil {
				return
			}
		}
	}})
	w.ways(t, func(t *testing.T, v way) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.origin+"/endless", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		receive(t, ended, "the end of the response")
		if x := w.next(t); x.Error != "the client does not read its response" && x.Error != "the client left" {
			t.Errorf("recorded as %q", x.Error)
		}
	})
}

// An origin that stops in the middle of its response is cut off, and the response
// does not look complete.
func TestOriginFallsSilent(t *testing.T) {
	for _, length := range []string{"", "100"} {
		ended := make(chan struct{}, 10)
		w := newWorld(t, options{gate: func(o *Options) { o.Silence = short }, handler: func(rw http.ResponseWriter, r *http.Request) {
			if length != "" {
				rw.Header().Set("Content-Length", length)
			}
			io.WriteString(rw, "the beginning")
			http.NewResponseController(rw).Flush()
			<-r.Context().Done()
			ended <- struct{}{}
		}})
		w.ways(t, func(t *testing.T, v way) {
			resp, err := v.client.Get(v.origin + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err == nil || string(body) != "the beginning" {
				t.Errorf("the client read %q, %v", body, err)
			}
			receive(t, ended, "the end at the origin")
			if x := w.next(t); !strings.HasPrefix(x.Error, "the origin was silent for") {
				t.Errorf("recorded as %q", x.Error)
			}
		})
	}
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

// A response may be silent for as long as the origin likes, in every version of
// HTTP, and end whenever it does.
func TestSilentStream(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.IdleTimeout = short }, handler: func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{"data: 1\n\n", "data: 2\n\n", ""} {
			io.WriteString(rw, event)
			http.NewResponseController(rw).Flush()
			<-time.After(3 * short)
		}
	}})
	w.ways(t, func(t *testing.T, v way) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			var body io.Reader
			if method == http.MethodPost {
				body = strings.NewReader("a question")
			}
			_, answer := send(t, v.client, method, v.origin+"/", body)
			if answer != "data: 1\n\ndata: 2\n\n" {
				t.Errorf("%s: got %q", method, answer)
			}
		}
	})
}

// An upload waits for an origin that takes its time, however long that is.
func TestSlowOriginOfUpload(t *testing.T) {
	const size = 20 << 20
	const idle = time.Second // for the client too, on a busy machine
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.IdleTimeout = idle }, handler: func(rw http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 64<<10)
		<-time.After(idle * 3 / 2)
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(rw, n+64<<10, err)
	}})
	w.ways(t, func(t *testing.T, v way) {
		_, answer := send(t, v.client, http.MethodPost, v.origin+"/", strings.NewReader(strings.Repeat("x", size)))
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
	w := newWorld(t, options{gate: idleAfter(short), handler: func(rw http.ResponseWriter, r *http.Request) {
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
	conn := w.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUser-Agent: ExampleBot\r\n\r\nhello", w.http)
	conn.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, resp, 101)
	wantHeader(t, resp, "Upgrade", "websocket")
	wantHeader(t, resp, "Connection", "Upgrade")
	wantHeader(t, resp, "Alt-Svc", "")
	receive(t, ended, "the end at the origin")
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client read %q, %v", rest, err)
	}
}

// A client may take its time to read, longer than it may keep an idle connection.
func TestSlowReader(t *testing.T) {
	const size = 16 << 20
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.IdleTimeout = short }, handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Write(make([]byte, size))
	}})
	w.ways(t, func(t *testing.T, v way) {
		resp, err := v.client.Get(v.origin + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		<-time.After(3 * short)
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
			t.Errorf("the client read %d bytes, %v", n, err)
		}
	})
}
