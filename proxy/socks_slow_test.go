package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/client"
)

// A slow client has limits.header_timeout for the greeting, the login and the request together, not for each byte.
func TestSocksSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := policy.New(policy.Config{Robots: policy.DefaultRobots()})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		upstream, err := NewTransport(DefaultEgress(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer upstream.Close()
		p, err := New(Options{Settings: Settings{Engine: engine, Upstream: upstream}, Leaf: func(string) (*tls.Certificate, error) { return nil, io.EOF }})
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := net.Pipe()
		accepted, err := p.listener(oneConn{ours}).Accept()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		p.takeSocks(accepted.(*client.Conn), []byte{5})
		go io.Copy(io.Discard, theirs) // the answers
		sent := "\x01\x02\x01\x04team\x05wrong" + "\x05\x01\x00\x03\x10loop.example.com\x00\x50"
		for i := range len(sent) {
			time.Sleep(900 * time.Millisecond) // fake clock
			if _, err := io.WriteString(theirs, sent[i:i+1]); err != nil {
				break
			}
			if n := p.SocksConnections(); n.Refused[client.Incomplete] > 0 {
				break
			}
		}
		if took, most := time.Since(begin), DefaultLimits().HeaderTimeout; took < most-time.Second || took > most+time.Second {
			t.Errorf("it was refused after %v, want %v", took, most)
		}
		if n := p.SocksConnections(); n.Refused[client.Incomplete] != 1 {
			t.Errorf("got %+v", n)
		}
		theirs.Close()
		synctest.Wait()
		if n := p.Connections(); n.Open != 0 {
			t.Errorf("got %+v", n)
		}
	})
}

// oneConn is a listener with one connection.
type oneConn struct{ conn net.Conn }

func (l oneConn) Accept() (net.Conn, error) { return l.conn, nil }

func (l oneConn) Close() error { return nil }

func (l oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
