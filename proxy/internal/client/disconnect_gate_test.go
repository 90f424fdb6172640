package client_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"

	"robotsgate/proxy/internal/proxytest"
)

// TestCloseNotifyCancels: a client that sends close_notify in TLS has disconnected, although the
// TCP connection stays open.
func TestCloseNotifyCancels(t *testing.T) {
	arrived, gone := make(chan bool, 1), make(chan bool, 1)
	g := proxytest.Start(t, proxytest.Options{Handler: func(_ http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
		gone <- true
	}})
	inTunnel := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
	fmt.Fprintf(inTunnel, "GET / HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\n\r\n", proxytest.Host(g.HTTPS))
	toGate := tls.Client(g.Dial(), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
	for name, conn := range map[string]*tls.Conn{"in a tunnel": inTunnel, "to the gate": toGate} {
		t.Run(name, func(t *testing.T) {
			defer conn.Close()
			if conn == toGate {
				fmt.Fprintf(conn, "GET %s/ HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\n\r\n", g.HTTP, proxytest.Host(g.HTTP))
			}
			proxytest.Receive(t, arrived, "the request")
			conn.CloseWrite()
			proxytest.Receive(t, gone, "the end at the origin")
		})
	}
}

// TestDisconnectDuringUpgrade: a client that disconnects during a WebSocket handshake ends the
// connection to the origin.
func TestDisconnectDuringUpgrade(t *testing.T) {
	o, arrived, closed := proxytest.StartUnanswered(t, "")
	g := proxytest.Start(t, proxytest.Options{})
	for range 3 {
		conn := g.Dial()
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", o.Host, o.Host)
		proxytest.Receive(t, arrived, "the request")
		conn.Close()
		proxytest.Receive(t, closed, "the end of the connection to the origin")
	}
}
