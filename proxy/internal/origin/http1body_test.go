//go:build unix

package origin

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/proxy/internal/netconn"
)

// TestReadArrived: behind the buffered part ReadArrived reads what has arrived, without waiting. It reads nothing if that
// cannot be told.
func TestReadArrived(t *testing.T) {
	leaf := localLeaf(t)
	const length = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	var errNone = errors.New("none")
	for name, k := range map[string]struct {
		first, rest string // of the answer; "end" is the connection's
		secure      bool
		read        int // bytes that are read first
		arrived     int // bytes that have to come before
		room        int
		want        string
		err         error
		left        string // that is read then
		leftErr     error
		kept        bool
	}{
		"nothing has come":  {first: length + "body", rest: "rest", read: 4, room: 9, left: "rest", kept: true},
		"the rest":          {first: length + "body", rest: "rest", read: 4, arrived: 4, room: 9, want: "rest", err: io.EOF, kept: true},
		"some of it":        {first: length + "body", rest: "re", read: 4, arrived: 2, room: 9, want: "re", err: nil, left: "", leftErr: errNone},
		"little room":       {first: length + "body", rest: "rest", read: 4, arrived: 4, room: 3, want: "res", left: "t", kept: true},
		"no room":           {first: length + "body", rest: "rest", read: 4, arrived: 4, room: 0, left: "rest", kept: true},
		"more than all":     {first: length + "body", rest: "rest" + "HTTP/1.1 200 OK\r\n", read: 4, arrived: 21, room: 99, want: "rest", err: io.EOF},
		"something at hand": {first: length + "body", rest: "rest", read: 2, arrived: 4, room: 9, left: "dyrest", kept: true},
		"its end":           {first: length + "body", rest: "end", read: 4, arrived: 1, room: 9, leftErr: io.ErrUnexpectedEOF},
		"all was read":      {first: length + "bodyrest", read: 8, room: 9, kept: true},
		"chunks":            {first: chunks + "4\r\nbody\r\n", rest: "0\r\n\r\n", read: 4, arrived: 5, room: 9, kept: true},
		"TLS":               {first: length + "body", rest: "rest", secure: true, read: 4, arrived: 5, room: 9, left: "rest", kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			proceed := make(chan bool, 1)
			o := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) {
				if k.secure {
					conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*leaf}})
				}
				http.ReadRequest(bufio.NewReader(conn))
				io.WriteString(conn, k.first)
				<-proceed
				if k.rest != "end" {
					io.WriteString(conn, k.rest)
					<-proceed
				}
			})
			c := newClient(t)
			if k.secure {
				c.connect = func(ctx context.Context, key originKey) (net.Conn, error) {
					conn, err := dialPlain(ctx, key)
					return tls.Client(netconn.New(conn), &tls.Config{InsecureSkipVerify: true}), err
				}
			}
			r := request(t, http.MethodGet, o.Host)
			if k.secure {
				r.URL.Scheme = "https"
			}
			resp, err := c.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body := resp.Body.(*http1Body)
			if _, err := io.ReadFull(body, make([]byte, k.read)); err != nil {
				t.Fatal(err)
			}
			if k.arrived > 0 {
				proceed <- true
				arrive(t, body.c.conn, k.arrived)
			}
			p := make([]byte, k.room)
			n, err := body.ReadArrived(p)
			if string(p[:n]) != k.want || err != k.err {
				t.Errorf("read %q, %v, want %q, %v", p[:n], err, k.want, k.err)
			}
			if k.arrived == 0 && k.rest != "" {
				proceed <- true
			}
			if k.leftErr == errNone {
				if n, err := body.ReadArrived(p); n > 0 || err != nil {
					t.Errorf("once more: %d bytes, %v", n, err)
				}
				body.Close()
				if n, err := body.ReadArrived(p); n > 0 || err != nil {
					t.Errorf("of what is closed: %d bytes, %v", n, err)
				}
			} else if err == nil && k.err == nil {
				got, err := io.ReadAll(body)
				if string(got) != k.left || err != k.leftErr {
					t.Errorf("read then %q, %v, want %q, %v", got, err, k.left, k.leftErr)
				}
			}
			if n, err := body.ReadArrived(p); n > 0 || err != nil {
				t.Errorf("behind the end: %d bytes, %v", n, err)
			}
			if got := c.get(originKey{k.secure, o.Host}) != nil; got != k.kept {
				t.Errorf("the connection can be used again: %v", got)
			}
			body.Close()
			close(proceed)
		})
	}
}
