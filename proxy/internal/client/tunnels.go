package client

import (
	"net"
	"sync"
)

// Tunnels is a listener whose connections are tunnels that clients opened with CONNECT.
type Tunnels struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewTunnels returns an open listener.
func NewTunnels() *Tunnels { return &Tunnels{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Deliver makes Accept return a connection. After Close it closes the connection.
func (t *Tunnels) Deliver(c net.Conn) {
	select {
	case t.conns <- c:
	case <-t.closed:
		c.Close()
	}
}

func (t *Tunnels) Accept() (net.Conn, error) {
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

func (t *Tunnels) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

func (t *Tunnels) Addr() net.Addr { return &net.TCPAddr{} }
