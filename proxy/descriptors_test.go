package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

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
	eventually(t, "no connection to an origin is left", func() bool {
		w.transport.origins.CloseIdleConnections()
		return w.descriptors.d.InUse() == 0
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
				o.Settings.Upstream.(*Transport).origins.Dialer.ControlContext = shortOf(k.errno, short.Load)
			}})
			w.ways(t, func(t *testing.T, v way) {
				short.Store(true)
				resp, body := v.get(t, "/a")
				wantShortage(t, resp, body, k.what)
				if outages := w.gate.settings.Load().Engine.Snapshots().Outages(); len(outages) > 0 {
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
				o.Settings.Upstream.(*Transport).origins.Dialer.ControlContext = shortOf(syscall.EMFILE, short.Load)
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
		o.Settings.Upstream.(*Transport).origins.Dialer.ControlContext = shortOf(syscall.EMFILE, short.Load)
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
		o.Settings.Upstream.(*Transport).origins.Dialer.ControlContext = shortOf(syscall.EMFILE, func() bool { return tries.Add(1) == 2 })
	}})
	resp, _ := w.get(w.http + "/a") // by the connection of robots.txt
	wantStatus(t, resp, 200)
	if n := w.descriptors.d.InUse(); n != 1 {
		t.Fatalf("%d connections are open", n)
	}
	resp, _ = w.get(w.https + "/a")
	wantStatus(t, resp, 200)
	if n := tries.Load(); n != 3 {
		t.Errorf("%d attempts to connect", n)
	}
	if n := w.descriptors.d.InUse(); n != 1 {
		t.Errorf("%d connections are open: is that to the other origin still kept?", n)
	}
}

// TestWithinShare: connections to origins keep within their share. An idle one makes room for
// another; where all are in use, the request is refused, and nothing is counted twice.
func TestWithinShare(t *testing.T) {
	d := NewDescriptors(64, quietLog) // 8 for connections to origins
	release := make(chan struct{})
	hold := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			rw.Header().Set("Content-Type", "text/plain") // no head to wait for
			rw.(http.Flusher).Flush()
			<-release
		}
	})
	w := newWorld(t, options{handler: hold, descriptors: d})
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
	if d.d.InUse() != 7 || d.Failures() != 2 {
		t.Errorf("%d in use, %d failures", d.d.InUse(), d.Failures())
	}
	close(release)
}
