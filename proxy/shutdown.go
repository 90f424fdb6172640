package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Shutdown stops accepting connections, waits for requests in flight until ctx ends, and
// then closes all connections.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.redirected.close()
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
}

func (o *openConns) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns)
}

// wait waits until no connection is left, as [http.Server.Shutdown] does. If the context ends
// before, it returns the context's error.
func (o *openConns) wait(ctx context.Context) error {
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

func (o *openConns) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}
