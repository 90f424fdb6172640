package client

import (
	"io"
	"net"
	"time"

	"robotsgate/proxy/internal/netconn"
)

// overLimit is the response to a client over a limit on connections.
const overLimit = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n" +
	"Retry-After: 1\r\nConnection: close\r\n\r\nrobotsgate: too many open connections.\r\n"

// MaxRejecting bounds the connections to which the response is being sent.
const MaxRejecting = 100

// rejectOverLimit answers a client over a limit, and closes the connection. It first waits a
// moment for the request: some clients do not expect a response before they have sent one, and
// to close a connection with unread data can destroy the response (RFC 9112, section 9.6).
func rejectOverLimit(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 4<<10)
	if n, _ := conn.Read(buf); n > 0 && buf[0] == recordTypeHandshake {
		return // in TLS, a response in clear would look like a broken server
	}
	if _, err := io.WriteString(conn, overLimit); err != nil {
		return
	}
	_ = netconn.CloseWrite(conn)
	for range 16 { // the rest of the request
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}
