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
	"syscall"
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
	// net/http itself gives a connection up if its writer gets no processor for 50 ms: only the gate's ends count.
	var ends atomic.Int64
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return endingConn{c, &ends}, err
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
		if err == nil && resp.Close {
			err = errors.New("the gate announces that it closes the connection")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		more = done(resp)
	}
	if n := ends.Load(); n > 0 {
		return fmt.Errorf("%s: the gate closed %d connections, want none", url, n)
	}
	return nil
}

// An endingConn counts that the other end closes the connection.
type endingConn struct {
	net.Conn
	ends *atomic.Int64
}

func (c endingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		c.ends.Add(1)
	}
	return n, err
}
