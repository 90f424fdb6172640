package proxy

import (
	"net"
	"sync"
)

// A feed is a listener whose connections come from CONNECT requests.
type feed struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newFeed() *feed { return &feed{conns: make(chan net.Conn), closed: make(chan struct{})} }

// give hands a connection to whoever accepts; after Close it closes it.
func (f *feed) give(c net.Conn) {
	select {
	case f.conns <- c:
	case <-f.closed:
		c.Close()
	}
}

func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *feed) Addr() net.Addr { return &net.TCPAddr{} }
