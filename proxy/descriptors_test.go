package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
)

// TestShares: what a limit is divided into leaves something for each use, and is not exceeded.
func TestShares(t *testing.T) {
	for _, limit := range []int{64, 300, 1024, 20_000, 65_536, 1 << 20} {
		d := NewDescriptors(limit, nil)
		clients, origins := d.Clients(1<<30), d.origins()
		admin, rejected := d.Other(500), d.Other(100)
		if sum := clients + origins + d.reserve(); sum > limit || clients < limit/2 || origins < 8 {
			t.Errorf("%d: %d for clients, %d for origins, %d in reserve", limit, clients, origins, d.reserve())
		}
		if admin+rejected > d.reserve()/2 || admin < 1 || rejected < 1 {
			t.Errorf("%d: %d admin connections and %d rejected clients in a reserve of %d", limit, admin, rejected, d.reserve())
		}
		if idle := d.idle(); 2*idle > origins/2+1 || idle < 1 {
			t.Errorf("%d: %d idle connections in each pool, of %d to origins", limit, idle, origins)
		}
	}
	unknown := NewDescriptors(0, nil)
	if unknown.Clients(10) != 10 || unknown.Other(500) != 500 || unknown.idle() != maxKept || !unknown.take(1<<30) {
		t.Error("there is a bound where no limit is known")
	}
	if d := NewDescriptors(19_999, nil); d.Clients(10_000) != 10_000 {
		t.Error("the runtime's soft limit, one less than the hard one, makes a difference")
	}
}

// shortOf returns a dialer's ControlContext that fails as a system does which is short of
// something, as long as short says so.
func shortOf(errno syscall.Errno, short func() bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(context.Context, string, string, syscall.RawConn) error {
		if short() {
			return os.NewSyscallError("socket", errno)
		}
		return nil
	}
}

// closeKept closes the connections to origins, all of which must be about to be idle.
func (w *world) closeKept(t *testing.T) {
	t.Helper()
	u := w.gate.settings.Load().Upstream
	eventually(t, "no connection to an origin is left", func() bool {
		if u.carrier != nil {
			u.carrier.closeOldest(maxKept)
		}
		u.standard.CloseIdleConnections()
		u.descriptors.mu.Lock()
		defer u.descriptors.mu.Unlock()
		return u.descriptors.inUse == 0
	})
}

// wantShortage checks that an answer says that the gate is short of something.
func wantShortage(t *testing.T, resp *http.Response, body, what string) {
	t.Helper()
	wantStatus(t, resp, http.StatusServiceUnavailable)
	if got := resp.Header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After: %q", got)
	}
	if got := resp.Header.Get("Proxy-Status"); !strings.Contains(got, "robotsgate;error=proxy_internal_error") || !strings.Contains(got, "out of "+what) {
		t.Errorf("Proxy-Status: %q", got)
	}
	if resp.Header.Get(headerDecision) != "" && strings.Contains(resp.Header.Get(headerDecision), "unreachable") {
		t.Error("the origin counts as unreachable")
	}
	if !strings.Contains(body, "out-of-resources") || !strings.Contains(body, "is out of "+what) {
		t.Errorf("body: %s", body)
	}
}

// TestShortages: what the gate's machine is short of is a 503, whatever way a request takes.
// Nothing is kept of it, so that the next request is answered by the origin.
func TestShortages(t *testing.T) {
	for _, k := range []struct {
		errno syscall.Errno
		what  string
	}{
		{syscall.EMFILE, "file descriptors"},
		{syscall.ENFILE, "file descriptors of the whole machine"},
		{syscall.ENOBUFS, "memory for connections"},
		{syscall.ENOMEM, "memory for connections"},
		{syscall.EADDRNOTAVAIL, "local ports for connections to this origin"},
	} {
		t.Run(k.what+" "+k.errno.Error(), func(t *testing.T) {
			var short atomic.Bool
			w := newWorld(t, options{gate: func(o *Options) {
				o.Settings.Upstream.direct.ControlContext = shortOf(k.errno, short.Load)
			}})
			w.ways(t, func(t *testing.T, v way) {
				short.Store(true)
				resp, body := v.get(t, "/a")
				wantShortage(t, resp, body, k.what)
				if outages := w.gate.settings.Load().Engine.Outages(); len(outages) > 0 {
					t.Errorf("an outage: %+v", outages)
				}
				short.Store(false)
				resp, _ = v.get(t, "/a") // robots.txt is known then
				wantStatus(t, resp, 200)
				w.closeKept(t)
				short.Store(true)
				resp, body = send(t, v.client, http.MethodPost, v.origin+"/a", strings.NewReader("a body")) // by Transport
				wantShortage(t, resp, body, k.what)
				short.Store(false)
				resp, _ = v.get(t, "/a")
				wantStatus(t, resp, 200)
				w.closeKept(t)
			})
		})
	}
}

// TestShortageBeforeParent: the parent proxy is not to blame either.
func TestShortageBeforeParent(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			var short atomic.Bool
			w := newWorld(t, options{parent: startParent(t, scheme), gate: func(o *Options) {
				o.Settings.Upstream.direct.ControlContext = shortOf(syscall.EMFILE, short.Load)
				o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
			}})
			w.http, w.https = "http://away.example.com", "https://away.example.com"
			w.ways(t, func(t *testing.T, v way) {
				short.Store(true)
				resp, body := v.get(t, "/a")
				wantShortage(t, resp, body, "file descriptors")
				short.Store(false)
				resp, _ = v.get(t, "/a")
				wantStatus(t, resp, 200)
				w.closeKept(t)
			})
			// The first refusal comes before the decision about the host, the second after it.
			for _, target := range []string{"unseen.example.com:443", "unseen.example.com:443"} {
				short.Store(true)
				conn, resp := w.connectTo(t, target)
				body, _ := io.ReadAll(resp.Body)
				wantShortage(t, resp, string(body), "file descriptors")
				conn.Close()
				short.Store(false)
				w.tunnel(target).Close()
			}
		})
	}
}

// TestShortageInPassthrough: a tunnel that is not opened is refused as a request is.
func TestShortageInPassthrough(t *testing.T) {
	var short atomic.Bool
	w := newWorld(t, options{gate: func(o *Options) {
		unseen(o)
		o.Settings.Upstream.direct.ControlContext = shortOf(syscall.EMFILE, short.Load)
	}})
	for range 2 { // before the decision about the host, and after it
		short.Store(true)
		_, resp := w.connectTo(t, host(w.https))
		body, _ := io.ReadAll(resp.Body)
		wantShortage(t, resp, string(body), "file descriptors")
		short.Store(false)
		w.tunnel(host(w.https)).Close()
		w.closeKept(t)
	}
}

// TestShortageInLookup: a lookup that finds no descriptor says nothing about the name, which is
// known afterwards.
func TestShortageInLookup(t *testing.T) {
	defer lookupsFail.Store(false)
	w := newWorld(t, options{})
	_, port, _ := net.SplitHostPort(host(w.http))
	page := "http://loop.example.com:" + port + "/a"
	lookupsFail.Store(true)
	resp, body := w.get(page)
	wantShortage(t, resp, body, "file descriptors")
	lookupsFail.Store(false)
	resp, _ = w.get(page)
	wantStatus(t, resp, 200)
}

// TestShortageInLookupBeforeParent: a name that could not be looked up is not passed to a parent
// proxy, which might lead to an address that the guard forbids.
func TestShortageInLookupBeforeParent(t *testing.T) {
	defer lookupsFail.Store(false)
	p := startParent(t, "http")
	w := newWorld(t, options{parent: p, egress: func(e *Egress) { e.AllowPrivate = nil }})
	lookupsFail.Store(true)
	resp, body := w.get("http://metadata.example.com/a")
	wantShortage(t, resp, body, "file descriptors")
	if asked := p.asked(); len(asked) > 0 {
		t.Errorf("the parent was asked for %q", asked)
	}
	lookupsFail.Store(false)
	resp, _ = w.get("http://metadata.example.com/a")
	wantStatus(t, resp, 403)
}

// TestTriedAgain: where idle connections can be closed, nothing is refused.
func TestTriedAgain(t *testing.T) {
	var tries atomic.Int64
	w := newWorld(t, options{gate: func(o *Options) {
		o.Settings.Upstream.direct.ControlContext = shortOf(syscall.EMFILE, func() bool { return tries.Add(1) == 2 })
	}})
	resp, _ := w.get(w.http + "/a") // by the connection of robots.txt
	wantStatus(t, resp, 200)
	carrier := w.gate.settings.Load().Upstream.carrier
	if n := carrier.order.Len(); n != 1 {
		t.Fatalf("%d connections are kept", n)
	}
	resp, _ = w.get(w.https + "/a")
	wantStatus(t, resp, 200)
	if n := tries.Load(); n != 3 {
		t.Errorf("%d attempts to connect", n)
	}
	if _, kept := carrier.kept[originKey{false, host(w.http)}]; kept {
		t.Error("the connection to the other origin is still kept")
	}
}

// TestWithinShare: connections to origins keep within their share. An idle one makes room for
// another; where all are in use, the request is refused, and nothing is counted twice.
func TestWithinShare(t *testing.T) {
	d := NewDescriptors(64, quietLog) // 8 for connections to origins
	release := make(chan struct{})
	hold := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			rw.(http.Flusher).Flush()
			<-release
		}
	})
	w := newWorld(t, options{handler: hold, egress: func(e *Egress) { e.Descriptors = d }})
	_, port, _ := net.SplitHostPort(host(w.http))
	client := w.client()
	get := func(page string) int {
		resp, err := client.Get(page)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || !strings.HasSuffix(page, "/held") {
			resp.Body.Close()
		} else {
			t.Cleanup(func() { resp.Body.Close() })
		}
		return resp.StatusCode
	}
	var statuses []int
	for range 9 {
		statuses = append(statuses, get("http://127.0.0.1:"+port+"/held"))
	}
	// The attempt to connect counts for two, so that the last is one too many.
	if want := []int{200, 200, 200, 200, 200, 200, 200, 503, 503}; !slices.Equal(statuses, want) {
		t.Errorf("got %v, want %v", statuses, want)
	}
	if d.inUse != 7 || d.Failures() != 2 {
		t.Errorf("%d in use, %d failures", d.inUse, d.Failures())
	}
	close(release)
}

// TestCountedOnce: a connection is counted until it is closed, however often that is done.
func TestCountedOnce(t *testing.T) {
	d := NewDescriptors(300, quietLog)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := d.dial(func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	if err != nil || d.inUse != 1 {
		t.Fatalf("%v, %d in use", err, d.inUse)
	}
	conn.Close()
	conn.Close()
	if _, err := d.dial(func() (net.Conn, error) { return nil, errors.New("refused") }); err == nil || d.inUse != 0 {
		t.Errorf("%v, %d in use", err, d.inUse)
	}
	if err := d.look(func() error { return nil }); err != nil || d.inUse != 0 {
		t.Errorf("%v, %d in use", err, d.inUse)
	}
}

// TestOldestFirst: of the idle connections, those go first that have been unused for longest.
func TestOldestFirst(t *testing.T) {
	var k keptConns
	k.idle = time.Hour
	defer k.end()
	var ends []net.Conn
	for n := range 3 {
		ours, theirs := net.Pipe()
		ends = append(ends, theirs)
		k.keep(newOriginConn(originKey{host: fmt.Sprint(n)}, ours))
	}
	if n := k.closeOldest(2); n != 2 {
		t.Errorf("%d closed", n)
	}
	for n, theirs := range ends {
		theirs.SetReadDeadline(time.Now())
		if _, err := theirs.Read(make([]byte, 1)); (err == io.EOF) != (n < 2) {
			t.Errorf("connection %d: %v", n, err)
		}
	}
	if n := k.closeOldest(2); n != 1 {
		t.Errorf("%d closed of the one that is left", n)
	}
}

// TestMostKept: the pool keeps no more than its share.
func TestMostKept(t *testing.T) {
	k := keptConns{idle: time.Hour, max: 2}
	defer k.end()
	for n := range 5 {
		ours, _ := net.Pipe()
		k.keep(newOriginConn(originKey{host: fmt.Sprint(n)}, ours))
	}
	if n := k.order.Len(); n != 2 {
		t.Errorf("%d are kept", n)
	}
}

// A failingListener fails to accept so many times.
type failingListener struct {
	net.Listener
	errno syscall.Errno
	times int
	tries int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.tries++; l.tries <= l.times {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.errno)}
	}
	ours, _ := net.Pipe()
	return ours, nil
}

// TestAcceptShortage: a listener makes room and tries again. If that does not help the error is
// one after which net/http waits and goes on. Other errors are passed on.
func TestAcceptShortage(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		d := NewDescriptors(300, quietLog)
		u := NewUpstream(Egress{DialTimeout: patience, IdleTimeout: time.Hour, Descriptors: d})
		ours, _ := net.Pipe()
		u.carrier.keep(newOriginConn(originKey{}, ours))
		l := &failingListener{errno: errno, times: 1}
		if conn, err := d.Listener(l).Accept(); err != nil || conn == nil || u.carrier.order.Len() > 0 || d.Failures() != 0 {
			t.Errorf("%v: %v, %d kept, %d failures", errno, err, u.carrier.order.Len(), d.Failures())
		}
		l = &failingListener{errno: errno, times: 2}
		_, err := d.Listener(l).Accept()
		if temporary, ok := err.(interface{ Temporary() bool }); !ok || !temporary.Temporary() || l.tries != 2 || d.Failures() != 1 {
			t.Errorf("%v: %v after %d tries, %d failures", errno, err, l.tries, d.Failures())
		}
		u.Close()
	}
	l := &failingListener{errno: syscall.EINVAL, times: 1}
	if _, err := new(Descriptors).Listener(l).Accept(); !errors.Is(err, syscall.EINVAL) || l.tries != 1 {
		t.Errorf("got %v after %d tries", err, l.tries)
	}
}

// TestShortageWarning: the log says it once a minute, with how often it was.
func TestShortageWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		d := NewDescriptors(300, slog.New(slog.NewTextHandler(&text, nil)))
		for range 5 {
			if err := d.fail(errAllInUse); !errors.Is(err, policy.ErrExhausted) {
				t.Fatal(err)
			}
		}
		time.Sleep(warnEvery)
		d.fail(syscall.ENOMEM)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "out of file descriptors") || !strings.Contains(lines[0], "times=1 limit=300") ||
			!strings.Contains(lines[1], "out of memory") || !strings.Contains(lines[1], "times=5") {
			t.Errorf("got %q", lines)
		}
	})
}

// TestNoShortage: errors of origins and of names stay what they are.
func TestNoShortage(t *testing.T) {
	to := func(ip string, err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 80)), Err: os.NewSyscallError("connect", err)}
	}
	for _, err := range []error{
		nil, io.EOF, syscall.ECONNREFUSED, context.DeadlineExceeded, to("192.0.2.1", syscall.ETIMEDOUT),
		to("2001:db8::1", syscall.EADDRNOTAVAIL), // there is no IPv6 here
		&net.DNSError{Err: "no such host", Name: "too many open files", IsNotFound: true},
		fmt.Errorf("the origin said: %q", syscall.EMFILE.Error()),
	} {
		if s := shortageIn(err); s != nil {
			t.Errorf("%v: %s", err, s.what)
		}
	}
	for _, err := range []error{to("192.0.2.1", syscall.EADDRNOTAVAIL), to("2001:db8::1", syscall.EMFILE), &net.DNSError{Err: "dial udp 192.0.2.53:53: socket: too many open files"}} {
		if shortageIn(err) == nil {
			t.Errorf("%v is none", err)
		}
	}
}

// A slowClose is a connection that takes a while to close, as TLS does where the origin does not
// read. Meanwhile it is counted.
type slowClose struct {
	net.Conn
	of      *Descriptors
	closing chan struct{}
}

func (c *slowClose) Close() error {
	close(c.closing)
	time.Sleep(sweepWait / 2)
	c.of.give(2 * perDial)
	return c.Conn.Close()
}

// TestWaitForSweep: a dial that needs a descriptor waits while another closes idle connections.
func TestWaitForSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDescriptors(300, quietLog)
		u := NewUpstream(Egress{DialTimeout: patience, IdleTimeout: time.Hour, Descriptors: d})
		closing := make(chan struct{})
		u.standard.large.DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
					io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
			return &slowClose{ours, d, closing}, nil
		}
		resp, err := u.standard.large.RoundTrip(request(t, http.MethodGet, "origin.example"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		synctest.Wait()
		d.take(d.origins())
		taken := make(chan bool)
		go func() { taken <- d.take(perDial) }()
		<-closing
		second := d.take(perDial)
		if first := <-taken; !first || !second {
			t.Error("a dial does not wait for the connections that are about to be closed")
		}
	})
}
