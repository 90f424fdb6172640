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

	"robotsgate/policy/glob"
)

// Of the body of a refused request 16 MiB are read, and no more is waited for.
func TestLongRefusedUpload(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Limits.HeaderTimeout = time.Hour }})
	for _, length := range []int{16 << 20, 1 << 30} {
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "POST %s/private/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", w.http, length)
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
	w := newWorld(t, options{
		gate: func(o *Options) { o.Limits.HeaderTimeout = 200 * time.Millisecond },
		handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusRequestEntityTooLarge) // and does not read
		}})
	smuggled := "GET " + w.http + "/SMUGGLED HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, parts := range map[string][]string{
		"malformed chunk, allowed": {"POST " + w.http + "/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled},
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
