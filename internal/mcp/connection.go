package mcp

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A transport makes bounded connections.
type transport struct{ sdk.Transport }

func (t *transport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return &connection{Connection: c, calls: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1), closed: make(chan struct{})}, err
}

// A connection reads no message while maxCalls calls are in progress: the SDK would keep all messages in memory. It
// reports the end of the input when all calls have been answered: the SDK would cancel them.
type connection struct {
	sdk.Connection
	answered chan struct{}
	once     sync.Once
	closed   chan struct{}

	mu    sync.Mutex
	calls map[jsonrpc.ID]bool // in progress
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	if err := c.until(ctx, maxCalls-1); err != nil {
		return nil, err
	}
	msg, err := c.Connection.Read(ctx)
	if err != nil {
		_ = c.until(ctx, 0)
		return nil, err
	}
	if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.calls[r.ID] = true
		c.mu.Unlock()
	}
	return msg, nil
}

// until waits until at most n calls are in progress.
func (c *connection) until(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		calls := len(c.calls)
		c.mu.Unlock()
		if calls <= n {
			return nil
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return io.EOF
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if r, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.calls, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default: // Read has not seen the last one yet
		}
	}
	return err
}

func (c *connection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
