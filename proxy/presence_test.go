package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy/internal/netconn"
)

// unanswered returns an origin that leaves all but robots.txt unanswered, or sends no more
// than the beginning of an answer. It tells when such a request has come, and when its
// connection was closed.
func unanswered(t *testing.T, beginning string) (o *lineOrigin, arrived, closed chan bool) {
	arrived, closed = make(chan bool, 1), make(chan bool, 1)
	return startLineOrigin(t, func(_ int, conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if r.URL.Path == "/robots.txt" {
				io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			io.WriteString(conn, beginning)
			arrived <- true
			io.Copy(io.Discard, reader)
			closed <- true
		}
	}), arrived, closed
}

// TestClientLeavesBehindMore: that a client has left is found out too if it had sent more than
// its request, as TLS does when it says goodbye.
func TestClientLeavesBehindMore(t *testing.T) {
	if !canTellPeerLeft {
		t.Skip("here net/http finds out, which has to read all before")
	}
	o, arrived, closed := unanswered(t, "")
	w := newWorld(t, options{})
	conn := w.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\nGET", o.host, o.host)
	receive(t, arrived, "the request")
	conn.Close()
	receive(t, closed, "the end of the connection to the origin")
}

// TestNobodyWaitsForTheClient: while a request is served nothing waits for what its client sends next,
// and that is read all the same.
func TestNobodyWaitsForTheClient(t *testing.T) {
	if !canTellPeerLeft {
		t.Skip("here net/http waits")
	}
	arrived, answer := make(chan bool, 1), make(chan bool)
	o := startLineOrigin(t, func(_ int, conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if r.URL.Path != "/robots.txt" {
				arrived <- true
				<-answer
			}
			io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
	})
	w := newWorld(t, options{})
	clear := w.dial()
	defer clear.Close()
	tunnel := w.dial()
	defer tunnel.Close()
	fmt.Fprintf(tunnel, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.host, o.host)
	if _, err := io.ReadFull(tunnel, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	for name, conn := range map[string]net.Conn{"http": clear, "http in a tunnel": tunnel} {
		t.Run(name, func(t *testing.T) {
			reader := bufio.NewReader(conn)
			url := "/x"
			if conn == clear {
				url = "http://" + o.host + url
			}
			request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", url, o.host)
			io.WriteString(conn, request)
			for range 3 {
				receive(t, arrived, "the request")
				eventually(t, "no Read in the background", func() bool { return !running("backgroundRead") })
				io.WriteString(conn, request)
				answer <- true
				resp, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
			}
			receive(t, arrived, "the last request")
			answer <- true
		})
	}
}

// running reports whether a goroutine is in this function.
func running(name string) bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), name+"(")
}

// socketPair returns both ends of a connection.
func socketPair(t *testing.T) (server, client *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); c.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

func TestPresence(t *testing.T) {
	if !canTellPeerLeft {
		t.Skip("there is none")
	}
	for name, c := range map[string]struct {
		leave func(server, client *net.TCPConn, end context.CancelFunc)
		left  bool
	}{
		"stays":                  {func(_, _ *net.TCPConn, _ context.CancelFunc) {}, false},
		"stays and sends":        {func(_, client *net.TCPConn, _ context.CancelFunc) { io.WriteString(client, "more") }, false},
		"leaves":                 {func(_, client *net.TCPConn, _ context.CancelFunc) { client.Close() }, true},
		"ends its half":          {func(_, client *net.TCPConn, _ context.CancelFunc) { client.CloseWrite() }, true},
		"resets":                 {func(_, client *net.TCPConn, _ context.CancelFunc) { client.SetLinger(0); client.Close() }, true},
		"is left":                {func(server, _ *net.TCPConn, _ context.CancelFunc) { server.Close() }, true},
		"net/http gives it up":   {func(_, _ *net.TCPConn, end context.CancelFunc) { end() }, true},
		"sends more, and leaves": {func(_, client *net.TCPConn, _ context.CancelFunc) { io.WriteString(client, "more"); client.Close() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := socketPair(t)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var p presence
			p.of(netconn.New(server))
			v := &visit{Context: ctx, presence: &p, since: time.Now()}
			p.begin(v)
			defer v.end()
			c.leave(server, client, end)
			if c.left {
				receive(t, v.Done(), "the end of the visit")
				return
			}
			p.look()
			if err := v.Err(); err != nil {
				t.Errorf("it ended: %v", err)
			}
		})
	}
}

// TestPresenceBetweenVisits: the timer does not go on while nothing is served, and goes on when
// something is again.
func TestPresenceBetweenVisits(t *testing.T) {
	var p presence
	server, client := socketPair(t)
	p.of(netconn.New(server))
	first := &visit{Context: t.Context(), presence: &p, since: time.Now()}
	p.watch(http.StateActive)
	p.begin(first)
	if !p.idle(make([]byte, 1)) || p.idle(make([]byte, 2)) {
		t.Error("while a request is served, a Read of one byte alone is that in the background")
	}
	first.end()
	eventually(t, "the timer is at rest", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.runs
	})
	if !canTellPeerLeft {
		return
	}
	client.Close()
	second := &visit{Context: t.Context(), presence: &p, since: time.Now()}
	p.begin(second)
	receive(t, second.Done(), "the end of the second visit")
	second.end()
}

func TestVisitIsAContext(t *testing.T) {
	type key struct{}
	x := &exchange{}
	v := &visit{Context: context.WithValue(t.Context(), key{}, "net/http's"), x: x, presence: &presence{}}
	if v.Value(key{}) != "net/http's" || v.Value(exchangeKey{}) != x {
		t.Error("values are missing")
	}
	child, cancel := context.WithTimeout(v, time.Hour)
	defer cancel()
	called := make(chan string, 3)
	for _, name := range []string{"first", "second", "third"} {
		stop := afterFunc(v, func() { called <- name })
		if name == "second" {
			if !stop() || stop() {
				t.Error("only the first stop stops")
			}
		}
	}
	stopThird := context.AfterFunc(v, func() { called <- "stdlib" })
	if v.Err() != nil || child.Err() != nil {
		t.Error("it has ended before it ends")
	}
	v.end()
	v.end() // of no effect
	receive(t, v.Done(), "the end")
	receive(t, child.Done(), "the child's end")
	if !errors.Is(v.Err(), context.Canceled) || !errors.Is(context.Cause(child), context.Canceled) {
		t.Errorf("got %v and %v", v.Err(), context.Cause(child))
	}
	got := map[string]bool{}
	for range 3 {
		got[receive(t, called, "a call")] = true
	}
	if got["second"] || len(got) != 3 {
		t.Errorf("called: %v", got)
	}
	if stopThird() {
		t.Error("what was called can't be stopped")
	}
	afterFunc(v, func() { called <- "late" })
	if name := receive(t, called, "the late one"); name != "late" {
		t.Errorf("called: %s", name)
	}
}

// TestGoodbyeIsLeaving: a client that says goodbye in TLS has left, although it leaves the connection open.
func TestGoodbyeIsLeaving(t *testing.T) {
	arrived, gone := make(chan bool, 1), make(chan bool, 1)
	w := newWorld(t, options{handler: func(_ http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
		gone <- true
	}})
	inTunnel := tls.Client(w.tunnel(host(w.https)), &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1"})
	fmt.Fprintf(inTunnel, "GET / HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\n\r\n", host(w.https))
	toGate := tls.Client(w.dial(), &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1"})
	for name, conn := range map[string]*tls.Conn{"in a tunnel": inTunnel, "to the gate": toGate} {
		t.Run(name, func(t *testing.T) {
			defer conn.Close()
			if conn == toGate {
				fmt.Fprintf(conn, "GET %s/ HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\n\r\n", w.http, host(w.http))
			}
			receive(t, arrived, "the request")
			conn.CloseWrite()
			receive(t, gone, "the end at the origin")
		})
	}
}

// TestReadAhead: what a client sends in TLS while its request is served is no goodbye, and is
// there when it is read.
func TestReadAhead(t *testing.T) {
	if !canTellPeerLeft {
		t.Skip("there is no presence")
	}
	leaf := localLeaf(t)
	under, other := socketPair(t)
	easy := netconn.New(under)
	server := tls.Server(easy, &tls.Config{Certificates: []tls.Certificate{*leaf}})
	client := tls.Client(other, &tls.Config{InsecureSkipVerify: true})
	go client.Handshake()
	if err := server.Handshake(); err != nil {
		t.Fatal(err)
	}
	var p presence
	p.of(easy)
	p.tls = server
	tunnel := &secureTunnel{server, &p}
	looked := func() bool { // whether something was read
		p.look()
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.ahead) > 0
	}
	for range 2 {
		p.watch(http.StateActive)
		v := &visit{Context: t.Context(), presence: &p, since: time.Now()}
		p.begin(v)
		io.WriteString(client, "next")
		eventually(t, "something is read", looked)
		looked()
		if err := v.Err(); err != nil {
			t.Errorf("it ended: %v", err)
		}
		v.end()
		p.handOver()
		got := make([]byte, 4)
		if _, err := io.ReadFull(tunnel, got); string(got) != "next" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	p.watch(http.StateActive)
	v := &visit{Context: t.Context(), presence: &p, since: time.Now()}
	p.begin(v)
	defer v.end()
	client.CloseWrite()
	receive(t, v.Done(), "the end of the visit")
}

// TestUpgraderLeaves: nor does the client of a WebSocket leave unseen before it has one.
func TestUpgraderLeaves(t *testing.T) {
	o, arrived, closed := unanswered(t, "")
	w := newWorld(t, options{})
	for range 3 {
		conn := w.dial()
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", o.host, o.host)
		receive(t, arrived, "the request")
		conn.Close()
		receive(t, closed, "the end of the connection to the origin")
	}
}

// TestSecureTunnelReads: what a client sends in TLS behind a request that is being served is
// left for when it has been served.
func TestSecureTunnelReads(t *testing.T) {
	server, client := net.Pipe()
	defer server.Close()
	go client.Close()
	p := &presence{}
	s := &secureTunnel{tls.Server(server, &tls.Config{}), p}
	p.serving.Store(true)
	if n, err := s.Read(make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	p.serving.Store(false)
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("the connection was not asked")
	}
}

func BenchmarkVisit(b *testing.B) {
	parent, end := context.WithCancel(b.Context())
	defer end()
	b.ReportAllocs()
	for b.Loop() {
		var p presence
		v := &visit{Context: parent, presence: &p, since: time.Now()}
		p.visit, p.runs = v, true
		p.begin(v)
		afterFunc(v, end)()
		v.end()
	}
}

// TestNextLook: what has just begun is looked at soon, what takes hours seldom.
func TestNextLook(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0: lookSoon, time.Second: lookSoon, 4 * time.Second: time.Second, time.Hour: lookSeldom,
	} {
		if got := nextLook(age); got != want {
			t.Errorf("after %v: %v, want %v", age, got, want)
		}
	}
}

// TestLookSoonAgain: a request is looked at soon, however long the one before has taken.
func TestLookSoonAgain(t *testing.T) {
	if !canTellPeerLeft {
		t.Skip("there is no presence")
	}
	var p presence
	server, client := socketPair(t)
	p.of(netconn.New(server))
	long := &visit{Context: t.Context(), presence: &p, since: time.Now().Add(-time.Hour)}
	p.begin(long)
	p.look() // and then in 5 s
	long.end()
	client.Close()
	next := &visit{Context: t.Context(), presence: &p, since: time.Now()}
	p.begin(next)
	defer next.end()
	begun := time.Now()
	receive(t, next.Done(), "the end of the visit")
	if took := time.Since(begun); took > lookSeldom/2 {
		t.Errorf("it took %v", took)
	}
}

// TestPrefaceIsHTTP1: the beginning of HTTP/2 is a request of HTTP/1 to net/http (RFC 9113, 3.4),
// after which what is read is for it again.
func TestPrefaceIsHTTP1(t *testing.T) {
	c := &clientConn{}
	c.presence.serving.Store(true)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("PRI * HTTP/2.0\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	r = r.WithContext(context.WithValue(t.Context(), clientKey{}, c))
	new(Proxy).attended(func(http.ResponseWriter, *http.Request) {})(httptest.NewRecorder(), r)
	if c.presence.serving.Load() {
		t.Error("the request is over, but counts as being served")
	}
}
