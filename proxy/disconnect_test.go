package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"robotsgate/internal/gatetest"
)

// unanswered starts an origin that responds to robots.txt only, or sends the beginning of a
// response. The channels report that a request has arrived, and that its connection was closed.
func unanswered(t *testing.T, beginning string) (o *gatetest.LineOrigin, arrived, closed chan bool) {
	arrived, closed = make(chan bool, 1), make(chan bool, 1)
	return gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(_ int, conn net.Conn, _ *http.Request) bool {
		io.WriteString(conn, beginning)
		arrived <- true
		io.Copy(io.Discard, conn)
		closed <- true
		return false
	})), arrived, closed
}

// TestCloseNotifyCancels: a client that sends close_notify in TLS has disconnected, although the
// TCP connection stays open.
func TestCloseNotifyCancels(t *testing.T) {
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

// TestDisconnectDuringUpgrade: a client that disconnects during a WebSocket handshake ends the
// connection to the origin.
func TestDisconnectDuringUpgrade(t *testing.T) {
	o, arrived, closed := unanswered(t, "")
	w := newWorld(t, options{})
	for range 3 {
		conn := w.dial()
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", o.Host, o.Host)
		receive(t, arrived, "the request")
		conn.Close()
		receive(t, closed, "the end of the connection to the origin")
	}
}
