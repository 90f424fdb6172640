package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Shutdown stops accepting, lets requests in flight finish until ctx ends, then
// closes everything.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.silent.close() // no request is in flight there
	var wg sync.WaitGroup
	var errs [3]error
	wg.Go(func() { errs[0] = p.outer.Shutdown(ctx) })
	wg.Go(func() { errs[1] = p.inner.Shutdown(ctx) })
	wg.Go(func() { errs[2] = p.open.wait(ctx) })
	wg.Wait()
	p.silent.close() // opened since
	p.outer.Close()
	p.inner.Close()
	p.open.close()
	p.hints.Stop()
	return errors.Join(errs[:]...)
}

// openConns are connections that net/http no longer looks after.
type openConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	empty chan struct{} // closed when the last is removed; nil unless somebody waits
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

// wait returns when no connection is left, or the context's error when it ends.
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
