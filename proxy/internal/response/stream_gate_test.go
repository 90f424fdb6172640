package response_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
	"robotsgate/proxy/internal/response"
)

// When a client leaves, its request is given up at the origin too.
func TestClientLeaves(t *testing.T) {
	f := proxytest.NewInFlight()
	g := proxytest.Start(t, proxytest.Options{Handler: f.ServeHTTP})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		for _, path := range []string{"/before the response", "/half"} {
			ctx, leave := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.Origin+strings.ReplaceAll(path, " ", "-"), nil)
			left := make(chan time.Time, 1)
			go func() {
				proxytest.Receive(t, f.Arrived, "the request")
				left <- time.Now()
				leave()
			}()
			if resp, err := v.Client.Do(req); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			proxytest.Receive(t, f.Gone, "the end at the origin")
			if took := time.Since(proxytest.Receive(t, left, "the client's leave")); took > time.Second {
				t.Errorf("%s: the origin was told after %v", path, took)
			}
			if x := g.Next(t); x.Error == "" {
				t.Errorf("%s: the record has no error: %+v", path, x)
			}
		}
	})
}

// The head of a response is passed on though its body has not begun: clients
// wait for it, as those of event streams do.
func TestHeadBeforeBody(t *testing.T) {
	release := make(chan bool)
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Path == "/known" {
			rw.Header().Set("Content-Length", "4")
		}
		rw.(http.Flusher).Flush()
		<-release
		io.WriteString(rw, "late")
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		for _, path := range []string{"/known", "/unknown"} {
			ctx, cancel := context.WithTimeout(t.Context(), proxytest.Patience)
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.Origin+path, nil)
			resp, err := v.Client.Do(req)
			release <- true
			if err != nil {
				t.Fatalf("%s: no response without its body: %v", path, err)
			}
			proxytest.WantStatus(t, resp, 200)
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow")
			if body, err := io.ReadAll(resp.Body); string(body) != "late" || err != nil {
				t.Errorf("%s: got %q, %v", path, body, err)
			}
			resp.Body.Close()
			cancel()
		}
	})
}

// An origin that answers before it has read all of an upload gets the rest of it.
func TestHeadUnderUpload(t *testing.T) {
	begun := make(chan bool, 1)
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(rw)
		rc.EnableFullDuplex()
		rc.Flush()
		begun <- true
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(rw, n, err)
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		body, upload := io.Pipe()
		go func() {
			io.WriteString(upload, "one")
			<-begun
			<-time.After(5 * response.HeadDelay) // for the head to be passed on, if it is
			for range 1000 {
				io.WriteString(upload, "more")
			}
			upload.Close()
		}()
		resp, answer := proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/", body)
		if resp.StatusCode != 200 || answer != "4003 <nil>" {
			t.Errorf("got %d %q", resp.StatusCode, answer)
		}
	})
}

// A response that breaks off is seen with its head and what has come of it, however
// little that is.
func TestBrokenOffIsSeen(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "100")
		io.WriteString(rw, "the beginning")
		http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, err := v.Client.Get(v.Origin + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow")
		if body, err := io.ReadAll(resp.Body); string(body) != "the beginning" || err == nil {
			t.Errorf("the client read %q, %v", body, err)
		}
	})
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
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.IdleAfter(proxytest.Short), Handler: endless})
	_, f := g.Frames(t, "/", 1<<30)
	f.WriteWindowUpdate(0, 1<<30)
	if x := g.Next(t); x.Error == "" {
		t.Errorf("the record says that all went well: %+v", x)
	}
}

// One that keeps its window shut. What is small net/http sends only after the
// exchange.
func TestWindowShut(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.IdleAfter(proxytest.Short)})
	for _, path := range []string{"/private/x", "/small"} {
		conn, f := g.Frames(t, path, 0)
		conn.SetReadDeadline(time.Now().Add(proxytest.Patience))
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

// A client that does not read its response is cut off.
func TestResponseNotRead(t *testing.T) {
	t.Parallel() // it waits most of the time
	ended := make(chan struct{}, 10)
	// For the origin too, on a busy machine.
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.IdleAfter(time.Second), Handler: func(rw http.ResponseWriter, r *http.Request) {
		endless(rw, r)
		ended <- struct{}{}
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.Origin+"/endless", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := v.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		proxytest.Receive(t, ended, "the end of the response")
		if x := g.Next(t); x.Error != "the client does not read its response" && x.Error != "the client left" {
			t.Errorf("recorded as %q", x.Error)
		}
	})
}

// An origin that stops in the middle of its response is cut off, and the response
// does not look complete.
func TestOriginFallsSilent(t *testing.T) {
	for _, length := range []string{"", "100"} {
		ended := make(chan struct{}, 10)
		g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Silence = proxytest.Short }, Handler: func(rw http.ResponseWriter, r *http.Request) {
			if length != "" {
				rw.Header().Set("Content-Length", length)
			}
			io.WriteString(rw, "the beginning")
			http.NewResponseController(rw).Flush()
			<-r.Context().Done()
			ended <- struct{}{}
		}})
		g.Ways(t, func(t *testing.T, v proxytest.Way) {
			resp, err := v.Client.Get(v.Origin + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err == nil || string(body) != "the beginning" {
				t.Errorf("the client read %q, %v", body, err)
			}
			proxytest.Receive(t, ended, "the end at the origin")
			if x := g.Next(t); !strings.HasPrefix(x.Error, "the origin was silent for") {
				t.Errorf("recorded as %q", x.Error)
			}
		})
	}
}

// A response may be silent for as long as the origin likes, in every version of
// HTTP, and end whenever it does.
func TestSilentStream(t *testing.T) {
	t.Parallel() // it waits most of the time
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.IdleTimeout = proxytest.Short }, Handler: func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{"data: 1\n\n", "data: 2\n\n", ""} {
			io.WriteString(rw, event)
			http.NewResponseController(rw).Flush()
			<-time.After(3 * proxytest.Short)
		}
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		t.Parallel()
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			var body io.Reader
			if method == http.MethodPost {
				body = strings.NewReader("a question")
			}
			_, answer := proxytest.Send(t, v.Client, method, v.Origin+"/", body)
			if answer != "data: 1\n\ndata: 2\n\n" {
				t.Errorf("%s: got %q", method, answer)
			}
		}
	})
}

// A client may take its time to read, longer than it may keep an idle connection.
func TestSlowReader(t *testing.T) {
	t.Parallel() // it waits most of the time
	const size = 16 << 20
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.IdleTimeout = proxytest.Short }, Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Write(make([]byte, size))
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, err := v.Client.Get(v.Origin + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		<-time.After(3 * proxytest.Short)
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
			t.Errorf("the client read %d bytes, %v", n, err)
		}
	})
}
