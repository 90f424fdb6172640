package origin_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/origin"
	"robotsgate/proxy/internal/proxytest"
)

// shortOf returns a dialer's ControlContext that fails as a system does which is short of
// something, as long as short says so.
func shortOf(errno syscall.Errno, short func() bool) control {
	return func(context.Context, string, string, syscall.RawConn) error {
		if short() {
			return os.NewSyscallError("socket", errno)
		}
		return nil
	}
}

// A control is called before each attempt to connect to an origin, as the ControlContext of a dialer.
type control func(context.Context, string, string, syscall.RawConn) error

// A connector is the transport of a gate, and the descriptors that it may use.
type connector struct {
	*origin.Transport
	conns *origin.Conns
}

// startConnecting starts a gate that connects to origins with the connector that it returns.
func startConnecting(t *testing.T, o proxytest.Options, d *origin.Conns, c control) (*proxytest.Gate, connector) {
	t.Helper()
	var config proxy.Egress
	var transport *origin.Transport
	change := o.Egress
	o.Egress = func(e *proxy.Egress) {
		if change != nil {
			change(e)
		}
		config = *e
	}
	o.Upstream = func(proxy.Upstream) proxy.Upstream {
		var err error
		if transport, err = origin.New(config, d); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(transport.Close)
		if c != nil { // in place of the guard
			transport.Dialer.ControlContext = c
		}
		return transport
	}
	return proxytest.Start(t, o), connector{transport, d}
}

// closeKept closes the connections to origins, all of which must be about to be idle.
func (c connector) closeKept(t *testing.T) {
	t.Helper()
	proxytest.Eventually(t, "no connection to an origin is left", func() bool {
		c.CloseIdleConnections()
		return c.conns.Len() == 0
	})
}

// wantShortage checks that an answer says that the gate is short of file descriptors.
func wantShortage(t *testing.T, resp *http.Response, body string) {
	t.Helper()
	proxytest.WantStatus(t, resp, http.StatusServiceUnavailable)
	if got := resp.Header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After: %q", got)
	}
	if got := resp.Header.Get("Proxy-Status"); !strings.Contains(got, "robotsgate;error=proxy_internal_error") || !strings.Contains(got, "out of file descriptors") {
		t.Errorf("Proxy-Status: %q", got)
	}
	if resp.Header.Get("Robots-Gate-Decision") != "" && strings.Contains(resp.Header.Get("Robots-Gate-Decision"), "unreachable") {
		t.Error("the origin counts as unreachable")
	}
	if !strings.Contains(body, "out-of-resources") || !strings.Contains(body, "is out of file descriptors") {
		t.Errorf("body: %s", body)
	}
}

// TestShortages: what the gate's machine is short of is a 503, whatever way a request takes.
// Nothing is kept of it, so that the next request is answered by the origin.
func TestShortages(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		t.Run(errno.Error(), func(t *testing.T) {
			var short atomic.Bool
			g, c := startConnecting(t, proxytest.Options{}, &origin.Conns{}, shortOf(errno, short.Load))
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				short.Store(true)
				resp, body := v.Get(t, "/a")
				wantShortage(t, resp, body)
				if outages := g.Proxy.Settings.Engine.Snapshots().Outages(); len(outages) > 0 {
					t.Errorf("an outage: %+v", outages)
				}
				short.Store(false)
				resp, _ = v.Get(t, "/a") // robots.txt is known then
				proxytest.WantStatus(t, resp, 200)
				c.closeKept(t)
				short.Store(true)
				resp, body = proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/a", strings.NewReader("a body")) // by Transport
				wantShortage(t, resp, body)
				short.Store(false)
				resp, _ = v.Get(t, "/a")
				proxytest.WantStatus(t, resp, 200)
				c.closeKept(t)
			})
		})
	}
}

// TestShortageBeforeParent: the parent proxy is not to blame either.
func TestShortageBeforeParent(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			var short atomic.Bool
			g, c := startConnecting(t, proxytest.Options{Parent: proxytest.StartParent(t, scheme), Proxy: func(o *proxy.Options) {
				o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
			}}, &origin.Conns{}, shortOf(syscall.EMFILE, short.Load))
			g.HTTP, g.HTTPS = "http://away.example.com", "https://away.example.com"
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				short.Store(true)
				resp, body := v.Get(t, "/a")
				wantShortage(t, resp, body)
				short.Store(false)
				resp, _ = v.Get(t, "/a")
				proxytest.WantStatus(t, resp, 200)
				c.closeKept(t)
			})
			// The first refusal comes before the decision about the host, the second after it.
			for _, target := range []string{"unseen.example.com:443", "unseen.example.com:443"} {
				short.Store(true)
				conn, resp := g.ConnectTo(t, target)
				body, _ := io.ReadAll(resp.Body)
				wantShortage(t, resp, string(body))
				conn.Close()
				short.Store(false)
				g.Tunnel(target).Close()
			}
		})
	}
}

// TestShortageInPassthrough: a tunnel that is not opened is refused as a request is.
func TestShortageInPassthrough(t *testing.T) {
	var short atomic.Bool
	g, c := startConnecting(t, proxytest.Options{Proxy: proxytest.PassThrough}, &origin.Conns{}, shortOf(syscall.EMFILE, short.Load))
	for range 2 { // before the decision about the host, and after it
		short.Store(true)
		_, resp := g.ConnectTo(t, proxytest.Host(g.HTTPS))
		body, _ := io.ReadAll(resp.Body)
		wantShortage(t, resp, string(body))
		short.Store(false)
		g.Tunnel(proxytest.Host(g.HTTPS)).Close()
		c.closeKept(t)
	}
}

// TestShortageInLookup: a lookup that finds no descriptor says nothing about the name, which is
// known afterwards.
func TestShortageInLookup(t *testing.T) {
	defer proxytest.LookupsFail.Store(false)
	g := proxytest.Start(t, proxytest.Options{})
	_, port, _ := net.SplitHostPort(proxytest.Host(g.HTTP))
	page := "http://loop.example.com:" + port + "/a"
	proxytest.LookupsFail.Store(true)
	resp, body := g.Get(page)
	wantShortage(t, resp, body)
	proxytest.LookupsFail.Store(false)
	resp, _ = g.Get(page)
	proxytest.WantStatus(t, resp, 200)
}

// TestShortageInLookupBeforeParent: a name that could not be looked up is not passed to a parent
// proxy, which might lead to an address that the guard forbids.
func TestShortageInLookupBeforeParent(t *testing.T) {
	defer proxytest.LookupsFail.Store(false)
	p := proxytest.StartParent(t, "http")
	g := proxytest.Start(t, proxytest.Options{Parent: p, Egress: func(e *proxy.Egress) { e.AllowPrivate = nil }})
	proxytest.LookupsFail.Store(true)
	resp, body := g.Get("http://metadata.example.com/a")
	wantShortage(t, resp, body)
	if asked := p.Asked(); len(asked) > 0 {
		t.Errorf("the parent was asked for %q", asked)
	}
	proxytest.LookupsFail.Store(false)
	resp, _ = g.Get("http://metadata.example.com/a")
	proxytest.WantStatus(t, resp, 403)
}

// TestTriedAgain: where idle connections can be closed, nothing is refused.
func TestTriedAgain(t *testing.T) {
	var tries atomic.Int64
	g, c := startConnecting(t, proxytest.Options{}, &origin.Conns{}, shortOf(syscall.EMFILE, func() bool { return tries.Add(1) == 2 }))
	resp, _ := g.Get(g.HTTP + "/a") // by the connection of robots.txt
	proxytest.WantStatus(t, resp, 200)
	if n := c.conns.Len(); n != 1 {
		t.Fatalf("%d connections are open", n)
	}
	resp, _ = g.Get(g.HTTPS + "/a")
	proxytest.WantStatus(t, resp, 200)
	if n := tries.Load(); n != 3 {
		t.Errorf("%d attempts to connect", n)
	}
	if n := c.conns.Len(); n != 1 {
		t.Errorf("%d connections are open: is that to the other origin still kept?", n)
	}
}
