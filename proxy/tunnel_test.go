package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/canonical"
)

// The names of a tunnel, kept since CONNECT, are the same as parsed anew.
func TestTunnelNames(t *testing.T) {
	hosts := []string{"shop.example", "Shop.EXAMPLE.", "127.0.0.1", "[::1]", "[0:0::1]", "xn--bcher-kva.example", "under_score.example"}
	servers := []string{"", "shop.example", "SHOP.example", "shop.example.", "a.shop.example", "127.0.0.1", "::1", "[::1]", "xn--bcher-kva.example", "shop.example:443", "a b", "under_score.example"}
	for _, host := range hosts {
		for _, port := range []string{"443", "80", "8080"} {
			target, err := canonical.ParseTarget("https", host+":"+port, "/")
			if err != nil {
				t.Fatal(err)
			}
			tunnel := newTunnel(target)
			for _, scheme := range []string{"http", "https"} {
				again, err := canonical.ParseTarget(scheme, tunnel.authority, "/")
				if got, want := tunnel.origin(scheme), again.Origin(); err != nil || got != want {
					t.Errorf("%s:%s: the origin for %s is %s, want %s", host, port, scheme, got, want)
				}
			}
			for _, server := range servers {
				named, err := canonical.ParseTarget("https", server, "/")
				want := server == "" || err == nil && named.Hostname() == target.Hostname()
				if got := tunnel.names(server); got != want {
					t.Errorf("%s:%s: names %q: %v, want %v", host, port, server, got, want)
				}
			}
			if again, err := canonical.ParseTarget("https", bracketed(tunnel.host), "/"); err != nil || again.Hostname() != tunnel.host {
				t.Errorf("%s:%s: the host %s is not canonical", host, port, tunnel.host)
			}
		}
	}
}

// A ClientHello larger than the read buffer of net/http arrives complete, whether the client
// sends it with CONNECT or later.
func TestLargeClientHello(t *testing.T) {
	protocols := []string{"http/1.1"}
	for i := range 40 {
		protocols = append(protocols, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 240)))
	}
	w := newWorld(t, options{})
	for _, together := range []bool{false, true} {
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		head := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host(w.https))
		if together {
			conn = &eager{Conn: conn, head: head}
		} else {
			io.WriteString(conn, head)
			if _, err := readHead(conn); err != nil {
				t.Fatal(err)
			}
		}
		inside := tls.Client(conn, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", NextProtos: protocols})
		fmt.Fprintf(inside, "GET /1 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host(w.https))
		if answer, err := io.ReadAll(inside); statusOf(string(answer)) != "200" {
			t.Errorf("together: %v: got %q, %v", together, answer, err)
		}
	}
}
