package gatetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Load sends many requests through a gate, over persistent connections.
type Load struct {
	Proxy  string
	CAFile string   // the gate's CA certificate
	URLs   []string // distributed over the clients; each response must have status 200
	HTTP2  bool     // inside TLS
}

// Run sends requests from several clients, each over one connection, until done returns false for
// a response. It returns the first error of each client. A connection that the gate closes is an
// error too, even if the request could be repeated.
func (l *Load) Run(clients int, done func(*http.Response) (more bool)) error {
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { errs[i] = l.client(l.URLs[i%len(l.URLs)], done) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *Load) client(url string, done func(*http.Response) bool) error {
	transport, err := newTransport(l.Proxy, l.CAFile, l.HTTP2)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	var dials atomic.Int64
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := http.Client{Timeout: patience, Transport: transport}
	for more := true; more; {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		more = done(resp)
	}
	if n := dials.Load(); n > 1 {
		return fmt.Errorf("%s: the client needed %d connections, want 1", url, n)
	}
	return nil
}
