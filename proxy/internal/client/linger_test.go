package client

import (
	"io"
	"net"
	"testing"
)

// A connection that lingers is half-closed at once, and closed when the client has closed it: a client that still
// sends can read the response.
func TestLinger(t *testing.T) {
	for _, lingers := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		peer, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := &Conn{Conn: accepted, listener: &Listener{Limits: &ConnLimits{}}}
		if _, err := io.WriteString(peer, "unread"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "response"); err != nil {
			t.Fatal(err)
		}
		if lingers {
			c.Linger()
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err = peer.Write(make([]byte, 10_000)); err != nil {
				break
			}
		}
		if (err == nil) != lingers {
			t.Errorf("lingers: %v: the client's writes: %v", lingers, err)
		}
		if response, err := io.ReadAll(peer); lingers && (err != nil || string(response) != "response") {
			t.Errorf("the client read %q, %v", response, err)
		}
	}
}
