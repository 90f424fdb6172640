package gate

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// piped is a listener that accepts the connections in a channel.
type piped chan net.Conn

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p piped) Close() error   { return nil }
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

// TestAdminConnectionsEnd: the admin listener closes the connections of silent clients.
func TestAdminConnectionsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		send string
		most time.Duration
	}{
		"nothing":            {"", 5 * time.Second},
		"half a head":        {"GET / HTTP/1.1\r\n", 5 * time.Second},
		"a body of nothing":  {"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", 11 * time.Second},
		"no further request": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 6 * time.Second},
		"unread answers":     {strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 3), 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					w.Write(make([]byte, 100_000))
				})
				s := adminServer(page, slog.New(slog.DiscardHandler))
				l := make(piped)
				go s.Serve(l)
				defer s.Close()
				defer close(l)
				client, server := net.Pipe()
				ended := make(chan struct{})
				l <- &told{server, ended}
				begun := time.Now()
				go io.WriteString(client, c.send)
				if name != "unread answers" {
					go io.Copy(io.Discard, client)
				}
				select {
				case <-ended:
				case <-time.After(time.Hour):
					t.Fatal("the connection stays")
				}
				if took := time.Since(begun); took > c.most {
					t.Errorf("it ends after %v, want %v at most", took, c.most)
				}
				client.Close()
			})
		})
	}
}

// told is a connection that reports when it is closed.
type told struct {
	net.Conn
	ended chan struct{}
}

func (c *told) Close() error {
	select {
	case <-c.ended:
	default:
		close(c.ended)
	}
	return c.Conn.Close()
}
