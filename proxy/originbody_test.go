//go:build unix

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/proxy/internal/netconn"
)

// TestMore: behind what was at hand is read what else has come, no more than that and
// without waiting; where it can't be told, nothing is.
func TestMore(t *testing.T) {
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
			o := startLineOrigin(t, func(_ int, conn net.Conn) {
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
			c := o.carrier(t)
			if k.secure {
				c.connect = func(ctx context.Context, key originKey) (net.Conn, error) {
					conn, err := dialPlain(ctx, key)
					return tls.Client(netconn.New(conn), &tls.Config{InsecureSkipVerify: true}), err
				}
			}
			r := request(t, http.MethodGet, o.host)
			if k.secure {
				r.URL.Scheme = "https"
			}
			resp, err := c.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body := resp.Body.(*originBody)
			if _, err := io.ReadFull(body, make([]byte, k.read)); err != nil {
				t.Fatal(err)
			}
			if k.arrived > 0 {
				proceed <- true
				arrive(t, body.c.conn, k.arrived)
			}
			p := make([]byte, k.room)
			n, err := body.more(p)
			if string(p[:n]) != k.want || err != k.err {
				t.Errorf("read %q, %v, want %q, %v", p[:n], err, k.want, k.err)
			}
			if k.arrived == 0 && k.rest != "" {
				proceed <- true
			}
			if k.leftErr == errNone {
				if n, err := body.more(p); n > 0 || err != nil {
					t.Errorf("once more: %d bytes, %v", n, err)
				}
				body.Close()
				if n, err := body.more(p); n > 0 || err != nil {
					t.Errorf("of what is closed: %d bytes, %v", n, err)
				}
			} else if err == nil && k.err == nil {
				got, err := io.ReadAll(body)
				if string(got) != k.left || err != k.leftErr {
					t.Errorf("read then %q, %v, want %q, %v", got, err, k.left, k.leftErr)
				}
			}
			if n, err := body.more(p); n > 0 || err != nil {
				t.Errorf("behind the end: %d bytes, %v", n, err)
			}
			if got := c.take(originKey{k.secure, o.host}) != nil; got != k.kept {
				t.Errorf("the connection can be used again: %v", got)
			}
			body.Close()
			close(proceed)
		})
	}
}

// A pieceBody comes in pieces, and is at hand as long as there are some.
type pieceBody struct {
	pieces []string
	err    error // behind the last
	joined bool  // the error comes with it
	reads  int
}

func (b *pieceBody) atHand() bool { return len(b.pieces) > 0 }

func (b *pieceBody) Read(p []byte) (int, error) {
	b.reads++
	if len(b.pieces) == 0 {
		return 0, b.err
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	if len(b.pieces) == 0 && b.joined {
		return n, b.err
	}
	return n, nil
}

func (b *pieceBody) more(p []byte) (int, error) { return b.Read(p) }
func (b *pieceBody) Close() error               { return nil }

// TestTeeReadsOn: behind what was kept, the client's first piece holds what is at hand; an
// error that comes with it is told once, and the body is not asked again.
func TestTeeReadsOn(t *testing.T) {
	const head = "<meta name=robots content=noindex><body>"
	for name, k := range map[string]struct {
		body  pieceBody
		here  bool
		room  int
		first string
		err   error // with the first
		then  string
		end   error
	}{
		"all is kept":        {pieceBody{pieces: []string{head}, err: io.EOF, joined: true}, true, 99, head, io.EOF, "", io.EOF},
		"a piece at hand":    {pieceBody{pieces: []string{head, "ab", "cd"}, err: io.EOF}, true, 99, head + "ab", nil, "cd", io.EOF},
		"the end in it":      {pieceBody{pieces: []string{head, "ab"}, err: io.EOF, joined: true}, true, 99, head + "ab", io.EOF, "", io.EOF},
		"it breaks off":      {pieceBody{pieces: []string{head, "ab"}, err: errCut, joined: true}, true, 99, head + "ab", errCut, "", errCut},
		"room for a byte":    {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, true, len(head) + 1, head + "a", nil, "b", io.EOF},
		"room for the kept":  {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, true, len(head), head, nil, "ab", io.EOF},
		"room for less":      {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, true, 9, head[:9], nil, head[9:] + "ab", io.EOF},
		"not known at hand":  {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, false, 99, head, nil, "ab", io.EOF},
		"nothing at hand":    {pieceBody{pieces: []string{head}, err: io.EOF}, true, 99, head, nil, "", io.EOF},
		"breaks off, unread": {pieceBody{pieces: []string{head}, err: errCut}, true, 99, head, nil, "", errCut},
	} {
		t.Run(name, func(t *testing.T) {
			body := &k.body
			tee := newTee(body, 1<<20)
			if !k.here {
				tee.here = nil
			}
			o := htmlmeta.Options{ContentType: "text/html"}
			if _, ok := tee.scanAtHand(o); !ok {
				tee.scan(o)
			}
			tee.leave()
			p := make([]byte, k.room)
			n, err := tee.Read(p)
			if string(p[:n]) != k.first || err != k.err {
				t.Errorf("read %q, %v, want %q, %v", p[:n], err, k.first, k.err)
			}
			if asked := body.reads; k.err != nil {
				if n, err := tee.more(p); n > 0 || err != nil {
					t.Errorf("more: %d bytes, %v", n, err)
				}
				if n, err := tee.Read(p); n > 0 || err != k.end {
					t.Errorf("read then %d bytes, %v, want %v", n, err, k.end)
				}
				if body.reads > asked {
					t.Error("the body was asked behind its end")
				}
				return
			}
			var got strings.Builder
			_, err = io.Copy(&got, struct{ io.Reader }{tee})
			if k.end == io.EOF {
				k.end = nil
			}
			if got.String() != k.then || err != k.end {
				t.Errorf("read then %q, %v, want %q, %v", got.String(), err, k.then, k.end)
			}
		})
	}
}

// TestTeeMore: more is the body's once all that was kept has been read.
func TestTeeMore(t *testing.T) {
	const head = "<meta name=robots content=noindex><body>"
	body := &pieceBody{pieces: []string{head, "ab", "cd"}, err: io.EOF, joined: true}
	tee := newTee(body, 1<<20)
	tee.here = nil // so that the first piece ends with what was kept
	tee.scan(htmlmeta.Options{ContentType: "text/html"})
	tee.leave()
	p := make([]byte, 99)
	if n, err := tee.more(p); n > 0 || err != nil {
		t.Errorf("before what was kept: %d bytes, %v", n, err)
	}
	if n, err := tee.Read(p); string(p[:n]) != head || err != nil {
		t.Fatalf("read %q, %v", p[:n], err)
	}
	tee.reading = true
	if n, err := tee.more(p); n > 0 || err != nil {
		t.Errorf("beside the scanner: %d bytes, %v", n, err)
	}
	tee.reading = false
	for _, want := range []struct {
		text string
		err  error
	}{{"ab", nil}, {"cd", io.EOF}, {"", nil}} {
		if n, err := tee.more(p); string(p[:n]) != want.text || err != want.err {
			t.Errorf("more: %q, %v, want %q, %v", p[:n], err, want.text, want.err)
		}
	}
	if n, err := tee.Read(p); n > 0 || err != io.EOF {
		t.Errorf("behind the end: %d bytes, %v", n, err)
	}
}
