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

// Run sends requests from several clients, each over one connection, while more returns true. It
// calls done after each response, and returns the first error of each client. A connection that
// the gate closes is an error too, even if the request could be repeated.
func (l *Load) Run(clients int, more func() bool, done func(*http.Response)) error {
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { errs[i] = l.client(l.URLs[i%len(l.URLs)], more, done) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *Load) client(url string, more func() bool, done func(*http.Response)) error {
	r, err := parseRequest([]string{"-x", l.Proxy, url})
	if err != nil {
		return err
	}
	r.caFile, r.http2 = l.CAFile, l.HTTP2
	transport, err := r.transport()
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
	for more() {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
		done(resp)
	}
	if n := dials.Load(); n > 1 {
		return fmt.Errorf("%s: the client needed %d connections, want 1", url, n)
	}
	return nil
}
