package terminal

import (
	"context"
	"time"
)

// While returns a context that ends with ctx, or soon after the terminal w has gone: its window was closed, or the
// connection to it was lost. If w is no terminal, it is ctx.
func While(ctx context.Context, w any) context.Context {
	if _, ok := File(w); !ok {
		return ctx
	}
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
			if _, ok := File(w); !ok {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return ctx
}
