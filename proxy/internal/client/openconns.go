package client

import (
	"context"
	"net"
	"sync"
	"time"
)

// OpenConns are hijacked connections, which net/http does not close.
type OpenConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Add notes a connection.
func (o *OpenConns) Add(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[c] = struct{}{}
}

// Remove forgets a connection.
func (o *OpenConns) Remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

func (o *OpenConns) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns)
}

// Wait waits until no connection is left, as [http.Server.Shutdown] does. If the context ends
// before, it returns the context's error.
func (o *OpenConns) Wait(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for o.count() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close closes all connections.
func (o *OpenConns) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}
