package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Shutdown stops accepting connections, waits for requests in flight until ctx ends, and
// then closes all connections.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.silent.close() // they have no request in flight
	var wg sync.WaitGroup
	var errs [3]error
	wg.Go(func() { errs[0] = p.outer.Shutdown(ctx) })
	wg.Go(func() { errs[1] = p.inner.Shutdown(ctx) })
	wg.Go(func() { errs[2] = p.open.wait(ctx) })
	wg.Wait()
	p.silent.close() // opened in the meantime
	p.outer.Close()
	p.inner.Close()
	p.open.close()
	p.hints.Stop()
	return errors.Join(errs[:]...)
}

// openConns are hijacked connections, which net/http does not close.
type openConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	empty chan struct{} // closed when the last is removed; nil if no call of wait is in progress
}

func (o *openConns) add(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[c] = struct{}{}
}

func (o *openConns) remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
	if len(o.conns) == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// wait waits until no connection is left. If the context ends before, it returns the context's error.
func (o *openConns) wait(ctx context.Context) error {
	o.mu.Lock()
	if len(o.conns) == 0 {
		o.mu.Unlock()
		return nil
	}
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	o.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *openConns) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}
