package client_test

import (
	"crypto/tls"
	"fmt"
	"net"
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
	for name, c := range map[string]struct {
		conn   net.Conn
		target string
		host   string
	}{
		"in a tunnel": {g.Tunnel(proxytest.Host(g.HTTPS)), "", proxytest.Host(g.HTTPS)},
		"to the gate": {g.Dial(), g.HTTP, proxytest.Host(g.HTTP)},
	} {
		t.Run(name, func(t *testing.T) {
			conn := tls.Client(c.conn, &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s/ HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\n\r\n", c.target, c.host)
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
