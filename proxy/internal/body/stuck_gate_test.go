package body_test

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

	"robotsgate/internal/gatetest"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// An origin that answers while the upload is under way: the answer is whole, and the
// upload goes on.
func TestEarlyAnswer(t *testing.T) {
	const size, piece = 100 << 10, 20 << 10
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
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
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		for _, length := range []int64{size, -1} {
			body, upload := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.Origin+"/", body)
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
			resp, err := v.Client.Do(req)
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
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.HeaderTimeout = proxytest.Short }})
	for _, c := range []struct{ method, target, want string }{
		{"POST", g.HTTP + "/private/", "403"},
		{"POST", "http://user@" + proxytest.Host(g.HTTP) + "/", "400"},
		{"POST", g.HTTP + "/%", "400"},
		{"TRACE", g.HTTP + "/", "405"},
		{"POST", g.HTTP + "/" + strings.Repeat("x", 16<<10), "414"},
		{"POST", "/", "405"}, // the gate's own page
	} {
		for _, rest := range []string{"Content-Length: 100\r\n\r\n", "Content-Length: 100\r\n\r\nthe beginning", "Transfer-Encoding: chunked\r\n\r\n", "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"} {
			wantSoon(t, g.Dial(), c.method+" "+c.target+" HTTP/1.1\r\nHost: x\r\nUser-Agent: ExampleBot\r\n"+rest, c.want)
		}
	}
	conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
	wantSoon(t, conn, "POST / HTTP/1.1\r\nHost: other.example\r\nContent-Length: 100\r\n\r\nabc", "421")
}

// wantSoon fails unless a request has a whole answer long before the connection's end.
func wantSoon(t *testing.T, conn net.Conn, request, want string) {
	t.Helper()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience / 4))
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
	t.Parallel() // it waits most of the time
	o := gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(int, net.Conn, *http.Request) bool {
		<-t.Context().Done()
		return false
	}))
	// Long enough for the robots.txt that comes first, on a busy machine too.
	g := proxytest.Start(t, proxytest.Options{Egress: func(e *proxy.Egress) { e.DialTimeout, e.ResponseHeaderTimeout = 2*time.Second, 2*time.Second }})
	resp, _ := g.Do(http.MethodPost, "http://"+o.Host+"/up", strings.NewReader(strings.Repeat("x", 32<<20)))
	proxytest.WantStatus(t, resp, 504)
}

// A client may pause in its upload for longer than an origin may take to answer.
func TestPauseInUpload(t *testing.T) {
	t.Parallel() // it waits most of the time
	g := proxytest.Start(t, proxytest.Options{
		Egress: func(e *proxy.Egress) { e.DialTimeout, e.ResponseHeaderTimeout = 2*proxytest.Short, 2*proxytest.Short },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(rw, n, err)
		},
	})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		body, upload := io.Pipe()
		go func() {
			defer upload.Close()
			for range 2 {
				upload.Write([]byte("half"))
				<-time.After(3 * proxytest.Short)
			}
		}()
		if _, answer := proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/", body); answer != "8 <nil>" {
			t.Errorf("got %q", answer)
		}
	})
}

// A client that is answered before the end of its upload may stop that, and read the
// answer, however long it takes.
func TestUploadGivenUp(t *testing.T) {
	t.Parallel() // it waits most of the time
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.IdleTimeout = 4 * proxytest.Short }, Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusUnauthorized)
		for range 2 {
			io.WriteString(rw, "no ")
			http.NewResponseController(rw).Flush()
			<-time.After(3 * proxytest.Short)
		}
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		body, upload := io.Pipe()
		defer upload.Close()
		go upload.Write(make([]byte, 1000))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.Origin+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 2_000_000
		start := time.Now()
		resp, err := v.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if answer, err := io.ReadAll(resp.Body); string(answer) != "no no " || err != nil || time.Since(start) > proxytest.Patience/2 {
			t.Errorf("got %q, %v after %v", answer, err, time.Since(start))
		}
	})
}

// Of the body of a refused request 16 MiB are read, and no more is waited for.
func TestLongRefusedUpload(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.HeaderTimeout = time.Hour }})
	for _, length := range []int{16 << 20, 1 << 30} {
		conn := g.Dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		fmt.Fprintf(conn, "POST %s/private/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", g.HTTP, length)
		if _, err := conn.Write(make([]byte, 16<<20)); err != nil {
			t.Errorf("of %d bytes: %v", length, err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 403 || length > 16<<20 && !resp.Close {
			t.Errorf("after 16 MiB of %d bytes: got %v, %v", length, resp, err)
		}
	}
}

// What is left of a request's body is never the next request. (TestWireFraming has malformed chunks.)
func TestRestOfBody(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Proxy: func(o *proxy.Options) { o.Limits.HeaderTimeout = 200 * time.Millisecond },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusRequestEntityTooLarge) // and does not read
		}})
	smuggled := "GET " + g.HTTP + "/SMUGGLED HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, parts := range map[string][]string{
		"malformed chunk, allowed": {"POST " + g.HTTP + "/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled},
		"slow body, refused":       {fmt.Sprintf("POST %s/private/up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nabc", g.HTTP, 3+len(smuggled)), smuggled},
		"slow body, allowed":       {fmt.Sprintf("POST %s/up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nabc", g.HTTP, 3+len(smuggled)), smuggled},
	} {
		conn := g.Dial()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		io.WriteString(conn, parts[0])
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
		}
		for _, part := range parts[1:] {
			io.WriteString(conn, part) // the gate may have closed
		}
		if second, err := http.ReadResponse(r, nil); err == nil {
			t.Errorf("%s: answered %v, and then %v", name, resp.Status, second.Status)
		}
		conn.Close()
	}
	for _, a := range g.Arrived() {
		if strings.Contains(a, "SMUGGLED") {
			t.Errorf("reached the origin: %s", a)
		}
	}
}
