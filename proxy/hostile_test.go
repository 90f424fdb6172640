package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/glob"
)

// A switch of protocols that nobody asked for would let the client's next
// requests run to the origin unseen.
func TestUnaskedSwitch(t *testing.T) {
	for _, upgrade := range []string{"websocket", "h2c", ""} {
		w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgrade)
			conn.SetReadDeadline(time.Now().Add(time.Second))
			if rest, _ := io.ReadAll(conn); len(rest) > 0 {
				t.Errorf("the origin was handed %q", rest)
			}
		}})
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		for _, path := range []string{"/ok", "/private/pipelined"} {
			fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: x\r\n\r\n", w.http, path)
		}
		r := bufio.NewReader(conn)
		for _, want := range []int{502, 403} {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			wantStatus(t, resp, want)
		}
	}
}

// A status out of all bounds is the origin's fault, not the gate's.
func TestOddStatus(t *testing.T) {
	for _, status := range []string{"099", "000", "007"} {
		w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err == nil {
				io.WriteString(conn, "HTTP/1.1 "+status+" Odd\r\nContent-Length: 0\r\n\r\n")
				conn.Close()
			}
		}})
		resp, _ := w.get(w.http + "/")
		wantStatus(t, resp, 502)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=http_protocol_error")
	}
}

// What is left of a request's body is never the next request.
func TestRestOfBody(t *testing.T) {
	w := newWorld(t, options{
		gate: func(o *Options) { o.Limits.HeaderTimeout = 200 * time.Millisecond },
		handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusRequestEntityTooLarge) // and does not read
		}})
	smuggled := "GET " + w.http + "/SMUGGLED HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, parts := range map[string][]string{
		"malformed chunk, refused": {"POST " + w.http + "/private/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled},
		"malformed chunk, allowed": {"POST " + w.http + "/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled},
		"bad end of chunk":         {"POST " + w.http + "/private/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n\n" + smuggled},
		"bad trailer":              {"POST " + w.http + "/private/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer line\r\n\r\n" + smuggled},
		"slow body, refused":       {fmt.Sprintf("POST %s/private/up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nabc", w.http, 3+len(smuggled)), smuggled},
		"slow body, allowed":       {fmt.Sprintf("POST %s/up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nabc", w.http, 3+len(smuggled)), smuggled},
	} {
		conn := w.dial()
		conn.SetDeadline(time.Now().Add(patience))
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
	for _, a := range w.arrived() {
		if strings.Contains(a, "SMUGGLED") {
			t.Errorf("reached the origin: %s", a)
		}
	}
}

// Trailers can't carry what the header may not, in neither direction.
func TestTrailersAreClean(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rw.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(rw, r.Trailer)
		rw.Header().Set("X-Sum", "1")
		rw.Header().Set(http.TrailerPrefix+"Robots-Gate-Tags", "forged")
		rw.Header().Set(http.TrailerPrefix+"Alt-Svc", "h3")
	}})
	answer := w.raw("POST " + w.http + "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: Proxy-Authorization, X-Original-URL\r\nTE: trailers\r\nConnection: close\r\n\r\n" +
		"1\r\na\r\n0\r\nProxy-Authorization: Basic x\r\nX-Original-URL: /private/\r\nRobots-Gate-Id: x\r\n\r\n")
	if !strings.Contains(answer, "map[]") || !strings.Contains(answer, "X-Sum: 1") || strings.Contains(answer, "forged") || strings.Contains(answer, "h3") {
		t.Errorf("got %s", answer)
	}
}

// Servers that hand headers on as variables read an underscore as a hyphen.
func TestReroutingHeaders(t *testing.T) {
	w := newWorld(t, options{})
	w.ways(t, func(t *testing.T, v way) {
		headers := []string{"X_Original_URL", "/private/", "X-Forwarded-Host", "other", "Proxy_Authorization", "x", "Robots_Gate_Id", "x"}
		if !strings.Contains(v.name, "HTTP/2") {
			headers = append(headers, "Connection", "User-Agent")
		}
		v.get(t, "/", headers...)
		h := w.last().Header.Clone()
		if h.Get("User-Agent") != "ExampleBot/1.0" {
			t.Errorf("User-Agent %q was sent, another was decided by", h.Get("User-Agent"))
		}
		h.Del("User-Agent")
		if len(h) > 0 {
			t.Errorf("the origin received %v", h)
		}
	})
}

// One address has one name, whichever way it is spelt.
func TestMappedAddress(t *testing.T) {
	w := newWorld(t, options{egress: func(e *Egress) {
		deny, err := glob.Host("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		e.DenyHosts = []glob.Glob{deny}
	}})
	_, port, _ := net.SplitHostPort(host(w.http))
	for _, name := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"} {
		resp, _ := w.get("http://" + name + ":" + port + "/")
		wantStatus(t, resp, 403)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=destination_ip_prohibited")
	}
	wantArrived(t, w)
}

// The address that means "this machine" leads to the gate itself.
func TestUnspecifiedAddress(t *testing.T) {
	w := newWorld(t, options{egress: func(e *Egress) {
		e.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}})
	_, port, _ := net.SplitHostPort(host(w.http))
	for _, name := range []string{"0.0.0.0", "[::]", "[::ffff:0.0.0.0]"} {
		resp, _ := w.get("http://" + name + ":" + port + "/")
		wantStatus(t, resp, 403)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=destination_ip_prohibited")
	}
	wantArrived(t, w)
}

// Of a field that is too long only the beginning counts, and the answer says so.
func TestTruncatedField(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Robots-Tag", "noindex, "+strings.Repeat("unknown, ", 2000)+"nosnippet")
		rw.Header().Set("Content-Type", "text/html")
	}})
	resp, _ := w.get(w.http + "/")
	wantHeader(t, resp, headerMeta, "complete;bytes=0;truncated")
	wantHeader(t, resp, headerTags, `noindex;src=x-robots-tag;scope="*"`)
}

func TestLongURL(t *testing.T) {
	w := newWorld(t, options{})
	w.ways(t, func(t *testing.T, v way) {
		resp, _ := v.get(t, "/"+strings.Repeat("a", 15<<10))
		wantStatus(t, resp, 200)
		resp, _ = v.get(t, "/private/"+strings.Repeat("a", 16<<10))
		wantStatus(t, resp, 414)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=http_request_error")
	})
	for _, a := range w.arrived() {
		if strings.Contains(a, "private") {
			t.Error("it reached the origin")
		}
	}
}

// A method's case makes it another one to net/http, but not to every server.
func TestMethodsInLowerCase(t *testing.T) {
	w := newWorld(t, options{})
	for _, method := range []string{"trace", "Trace", "connect"} {
		if got := statusOf(w.raw(method + " " + w.http + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); got != "405" {
			t.Errorf("%s: got %s, want 405", method, got)
		}
	}
	wantArrived(t, w)
}

// An origin can't keep its page from being read by calling its type a matter of
// the next hop.
func TestConnectionNamesContentType(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "Content-Type, X-Robots-Tag")
		rw.Header().Set("Content-Type", "text/html")
		rw.Header().Set("X-Robots-Tag", "nofollow")
		io.WriteString(rw, taggedPage)
	}})
	resp, _ := w.get(w.http + "/")
	wantHeader(t, resp, headerMeta, "complete;bytes=")
	wantHeader(t, resp, headerTags, wantTags)
}
