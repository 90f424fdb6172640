package client

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
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

// A halfCloser is a pipe whose half can be closed, like that of a TCP connection.
type halfCloser struct{ net.Conn }

func (halfCloser) CloseWrite() error { return nil }

// A connection that lingers is closed after 5 s, although its client still sends.
func TestLingerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, accepted := net.Pipe()
		c := &Conn{Conn: halfCloser{accepted}, listener: &Listener{Limits: &ConnLimits{}}}
		c.Linger()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for err := error(nil); err == nil && time.Since(start) < time.Minute; time.Sleep(time.Second / 10) { // fake clock
			_, err = peer.Write([]byte("x"))
		}
		if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("the connection was closed after %v, want 5 s", took)
		}
	})
}
