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

// A Load is many requests through a gate, over connections that are kept.
type Load struct {
	Proxy  string
	CAFile string   // of the gate
	URLs   []string // each client asks for one of them, in turn; 200 is the only good answer
	HTTP2  bool     // inside TLS
}

// Run sends requests from so many clients, each over one connection, for as long as
// more says so, and calls done after each answer. It returns what went wrong, up to the
// first error of each client: also a connection that was dropped, even where a request
// could be sent again.
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
		return fmt.Errorf("%s: %d connections were needed: some have been dropped", url, n)
	}
	return nil
}
