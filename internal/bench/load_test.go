//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	agent   = "BenchBot/1.0"
	clients = 64 // at a time
)

// An asker sends requests one after another, and reads the responses.
type asker interface {
	ask(n int) error // the n-th
	close()
}

// A load is the work of the clients in a measurement.
type load struct {
	open   func(proxy string, client int) (asker, error)
	status int
}

// A result is the measurement of a load.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	requests  int
	cost      spent // by the proxy, for each request
}

// run lets all clients send requests for the given time.
func (l *load) run(proxy string, d time.Duration) (result, error) {
	return l.measure(proxy, clients, func(_ int, passed time.Duration) bool { return passed <= d })
}

// measure lets connections send requests, numbered from 0, as long as more returns true for the
// next number and the time that has passed.
func (l *load) measure(proxy string, connections int, more func(n int, passed time.Duration) bool) (result, error) {
	errs := make([]error, connections)
	times := make([][]time.Duration, connections)
	var opened, all sync.WaitGroup
	var next atomic.Int64
	begin := make(chan struct{})
	var begun time.Time
	opened.Add(connections)
	for i := range connections {
		all.Go(func() {
			a, err := l.open(proxy, i)
			opened.Done()
			if err != nil {
				errs[i] = err
				return
			}
			defer a.close()
			<-begin
			for {
				n, start := int(next.Add(1)-1), time.Now()
				if !more(n, start.Sub(begun)) {
					return
				}
				if errs[i] = a.ask(n); errs[i] != nil {
					return
				}
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	opened.Wait()
	begun = time.Now()
	close(begin)
	all.Wait()
	took := time.Since(begun)
	merged := slices.Concat(times...)
	if err := errors.Join(errs...); err != nil || len(merged) == 0 {
		return result{}, fmt.Errorf("%d responses: %w", len(merged), errors.Join(errs...))
	}
	slices.Sort(merged)
	return result{
		perSecond: float64(len(merged)) / took.Seconds(), requests: len(merged),
		p50: merged[len(merged)/2], p99: merged[len(merged)*99/100],
	}, nil
}

// A kept is an asker over one persistent connection.
type kept struct {
	conn   net.Conn
	r      *bufio.Reader
	head   func(n int) []byte
	status int
}

func (k *kept) ask(n int) error { return k.send(k.head(n)) }

func (k *kept) send(head []byte) error {
	if _, err := k.conn.Write(head); err != nil {
		return err
	}
	return readAnswer(k.r, k.status)
}

func (k *kept) close() { k.conn.Close() }

// readAnswer reads a response with as little work as possible, so that the load costs
// little compared with the proxy.
func readAnswer(r *bufio.Reader, want int) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 || string(line[9:12]) != strconv.Itoa(want) {
		return fmt.Errorf("got %q, want %d", line, want)
	}
	length := -1
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); len(name) == 14 && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("a response without Content-Length")
	}
	_, err = r.Discard(length)
	return err
}

func heads(url func(n int) string) func(n int) []byte {
	return func(n int) []byte {
		u := url(n)
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nAccept: */*\r\n\r\n", u, hostOf(u), agent)
	}
}

// same returns the same request always.
func same(url string) func(n int) []byte {
	head := heads(func(int) string { return url })(0)
	return func(int) []byte { return head }
}

// plain sends requests with absolute URLs over a persistent connection.
func plain(status int, head func(n int) []byte) *load {
	return &load{status: status, open: func(proxy string, _ int) (asker, error) {
		conn, err := net.Dial("tcp", proxy)
		if err != nil {
			return nil, err
		}
		return &kept{conn, bufio.NewReaderSize(conn, 32<<10), head, status}, nil
	}}
}

// secureTo opens a tunnel with TLS in it.
func secureTo(proxy, host string, protocols ...string) (*tls.Conn, error) {
	conn, err := connectTo(proxy, host)
	if err != nil {
		return nil, err
	}
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	return c, c.Handshake()
}

func inside(host, path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nAccept: */*\r\n\r\n", path, host, agent)
}

// intercepted sends requests through a persistent tunnel.
func intercepted(host, path string) *load {
	head := inside(host, path)
	return &load{open: func(proxy string, _ int) (asker, error) {
		conn, err := secureTo(proxy, host, "http/1.1")
		if err != nil {
			return nil, err
		}
		return &kept{conn, bufio.NewReaderSize(conn, 32<<10), func(int) []byte { return head }, http.StatusOK}, nil
	}}
}

// interceptedHTTP2 does the same over HTTP/2.
func interceptedHTTP2(host, path string) *load {
	return &load{open: func(proxy string, _ int) (asker, error) {
		conn, err := secureTo(proxy, host, "h2")
		if err != nil {
			return nil, err
		}
		if p := conn.ConnectionState().NegotiatedProtocol; p != "h2" {
			return nil, fmt.Errorf("negotiated %q, want h2", p)
		}
		t := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
		c, err := t.NewClientConn(context.Background(), "https", host)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequest(http.MethodGet, "https://"+host+path, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", agent)
		return &streams{c, req}, nil
	}}
}

type streams struct {
	conn *http.ClientConn
	req  *http.Request
}

func (s *streams) ask(int) error {
	resp, err := s.conn.RoundTrip(s.req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(resp.Status))
	}
	return nil
}

func (s *streams) close() { s.conn.Close() }

// tunnelEach opens a tunnel for every request, with a full TLS handshake.
func tunnelEach(host, path string) *load {
	head := inside(host, path)
	return &load{open: func(proxy string, _ int) (asker, error) { return &each{proxy, host, head}, nil }}
}

type each struct {
	proxy, host string
	head        []byte
}

func (e *each) ask(int) error {
	conn, err := secureTo(e.proxy, e.host, "http/1.1")
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(e.head); err != nil {
		return err
	}
	return readAnswer(bufio.NewReader(conn), http.StatusOK)
}

func (e *each) close() {}
