package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// A sunkConn takes down what is written, until it fails.
type sunkConn struct {
	net.Conn
	got    bytes.Buffer
	fails  error // what the next Write returns, after half of it
	closed bool
}

func (c *sunkConn) Write(p []byte) (int, error) {
	if err := c.fails; err != nil {
		n, _ := c.got.Write(p[:len(p)/2])
		return n, err
	}
	return c.got.Write(p)
}

func (c *sunkConn) Close() error                     { c.closed = true; return nil }
func (c *sunkConn) SetWriteDeadline(time.Time) error { c.fails = nil; return nil }

// TestJoint: a small piece waits for the next, and for no longer than until the parting.
func TestJoint(t *testing.T) {
	under := &sunkConn{}
	c := newEasyConn(under)
	c.join()
	io.WriteString(c, "head ")
	if under.got.Len() > 0 {
		t.Errorf("written already: %q", &under.got)
	}
	if n, err := io.WriteString(c, "body "); n != 5 || err != nil || under.got.String() != "head body " {
		t.Errorf("got %d, %v; written: %q", n, err, &under.got)
	}
	io.WriteString(c, "rest ")
	if err := c.part(); err != nil || under.got.String() != "head body rest " {
		t.Errorf("got %v; written: %q", err, &under.got)
	}
	io.WriteString(c, "alone")
	if under.got.String() != "head body rest alone" {
		t.Errorf("written: %q", &under.got)
	}
}

// TestJointKeepsOrder: whatever pieces it gets, they are written whole and in their order.
func TestJointKeepsOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		under := &sunkConn{}
		c := newEasyConn(under)
		var want bytes.Buffer
		for range random.IntN(4) {
			c.join()
			for range random.IntN(5) {
				p := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, random.IntN(2*maxHeld))
				want.Write(p)
				if n, err := c.Write(p); n != len(p) || err != nil {
					t.Fatalf("got %d, %v", n, err)
				}
			}
			if err := c.part(); err != nil || !bytes.Equal(under.got.Bytes(), want.Bytes()) {
				t.Fatalf("%d bytes of %d, %v", under.got.Len(), want.Len(), err)
			}
		}
	}
}

// TestJointDoesNotGrow: what is large is not copied, nor does a buffer that is kept become large.
func TestJointDoesNotGrow(t *testing.T) {
	under := &sunkConn{}
	c := newEasyConn(under)
	for _, second := range []int{1, maxHeld - 4, maxHeld - 3, 100 * maxHeld} {
		c.join()
		io.WriteString(c, "head")
		held := c.joint.held
		io.WriteString(c, strings.Repeat("x", second))
		if cap(*held) != maxHeld {
			t.Errorf("after %d bytes there is room for %d, want %d", second, cap(*held), maxHeld)
		}
		if err := c.part(); err != nil {
			t.Error(err)
		}
	}
}

// TestJointFails: behind a write that failed nothing is written, since the client would take it for what
// comes next; and who believes that it was sent is told, at the latest at the parting.
func TestJointFails(t *testing.T) {
	for name, write := range map[string]func(c *easyConn) error{
		"at the parting": func(c *easyConn) error {
			io.WriteString(c, "head")
			return c.part()
		},
		"at the second piece": func(c *easyConn) error {
			io.WriteString(c, "head")
			if n, err := io.WriteString(c, "body"); n != 0 || err == nil {
				t.Errorf("got %d, %v", n, err)
			}
			return c.part()
		},
	} {
		t.Run(name, func(t *testing.T) {
			under := &sunkConn{fails: errCut}
			c := newEasyConn(under)
			c.join()
			if err := write(c); !errors.Is(err, errCut) {
				t.Errorf("got %v", err)
			}
			if !under.closed {
				t.Error("the connection is open")
			}
			under.fails = nil
			before := under.got.String()
			if _, err := io.WriteString(c, "more"); err == nil || under.got.String() != before {
				t.Errorf("got %v; written: %q", err, &under.got)
			}
			c.join()
			io.WriteString(c, "more")
			if err := c.part(); err == nil || under.got.String() != before {
				t.Errorf("got %v; written: %q", err, &under.got)
			}
		})
	}
}

// TestJoinNext: a small piece waits for the next Write, a moment at most, and one that is not small not at all.
func TestJoinNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &sunkConn{}
		c := newEasyConn(under)
		c.joint.http2 = true
		written := func() string { // once the timer has done what it does at this time
			synctest.Wait()
			c.joint.mu.Lock()
			defer c.joint.mu.Unlock()
			return under.got.String()
		}
		c.joinNext(time.Minute)
		io.WriteString(c, "head ")
		if got := written(); got != "" {
			t.Errorf("written already: %q", got)
		}
		io.WriteString(c, "body ")
		if got := written(); got != "head body " {
			t.Errorf("written: %q", got)
		}
		time.Sleep(time.Hour)
		c.joinNext(time.Minute)
		io.WriteString(c, "late ")
		time.Sleep(heldFor - 1)
		if got := written(); got != "head body " {
			t.Errorf("written too early: %q", got)
		}
		time.Sleep(time.Nanosecond)
		if got := written(); got != "head body late " {
			t.Errorf("written: %q", got)
		}
		io.WriteString(c, "alone ")
		if got := written(); got != "head body late alone " {
			t.Errorf("written: %q", got)
		}
		c.joinNext(time.Minute)
		(&clientConn{Conn: c}).unjoin()
		io.WriteString(c, "last")
		if got := written(); got != "head body late alone last" {
			t.Errorf("written: %q", got)
		}
		c.joinNext(time.Minute)
		long := strings.Repeat(".", maxHeld+1)
		io.WriteString(c, long)
		if got := written(); !strings.HasSuffix(got, "last"+long) {
			t.Errorf("%d bytes written", len(got))
		}
	})
}

// TestJoinNextIsForHTTP2: nobody would write behind it else.
func TestJoinNextIsForHTTP2(t *testing.T) {
	under := &sunkConn{}
	c := newEasyConn(under)
	c.joinNext(time.Minute)
	if io.WriteString(c, "all"); under.got.String() != "all" {
		t.Errorf("written: %q", &under.got)
	}
}

// TestJoinNextDoesNotWait: a handler is not held up by who writes to a client that does not read.
func TestJoinNextDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, under := net.Pipe()
		c := newEasyConn(under)
		c.joint.http2 = true
		go io.WriteString(c, "nobody reads it")
		synctest.Wait()
		done := make(chan bool)
		go func() {
			c.joinNext(time.Minute)
			close(done)
		}()
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("it waits")
		}
		client.Close()
	})
}

// TestJoinNextFails: where the timer can't write what is held, the connection is closed, and the next Write told.
func TestJoinNextFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, under := net.Pipe()
		defer client.Close()
		c := newEasyConn(under)
		c.joint.http2 = true
		c.joinNext(time.Minute)
		io.WriteString(c, "nobody reads it")
		time.Sleep(heldFor + time.Minute + 1)
		synctest.Wait()
		begun := time.Now()
		if _, err := io.WriteString(c, "nor this"); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) > 0 {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		if n, err := client.Read(make([]byte, 1)); n > 0 || err != io.EOF {
			t.Errorf("the client read %d, %v", n, err)
		}
	})
}

// TestJointTimerTooEarly: a timer that comes too early breaks two pieces anywhere, and they go on there.
func TestJointTimerTooEarly(t *testing.T) {
	under := &sunkConn{fails: os.ErrDeadlineExceeded}
	c := newEasyConn(under)
	c.write.until = time.Now().Add(time.Hour)
	c.join()
	io.WriteString(c, "head")
	if n, err := io.WriteString(c, "body"); n != 4 || err != nil || under.got.String() != "headbody" {
		t.Errorf("got %d, %v; written: %q", n, err, &under.got)
	}
	if err := c.part(); err != nil {
		t.Error(err)
	}
}

// TestJoinedAnswers: answers of every length come whole, one after the other on one connection.
func TestJoinedAnswers(t *testing.T) {
	body := func(n int) string { return strings.Repeat("0123456789", n/10+1)[:n] }
	lengths := map[string]int{"/0": 0, "/2047": 2047, "/2048": 2048, "/3500": 3500, "/3900": 3900, "/4000": 4000, "/4096": 4096, "/5000": 5000, "/34000": 34000, "/49152": 49152, "/200000": 200000}
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		text := body(lengths[r.URL.Path])
		if r.URL.RawQuery == "chunked" {
			rw.(http.Flusher).Flush()
		}
		io.WriteString(rw, text)
	}})
	w.ways(t, func(t *testing.T, v way) {
		for path, n := range lengths {
			for _, query := range []string{"", "?chunked"} {
				if resp, got := v.get(t, path+query); resp.StatusCode != http.StatusOK || got != body(n) {
					t.Errorf("%s: %d, %d bytes", path+query, resp.StatusCode, len(got))
				}
				if x := w.next(t); x.Bytes != int64(n) {
					t.Errorf("%s: the record says %d bytes", path+query, x.Bytes)
				}
			}
		}
	})
}

// TestHeadBeforeShutWindow: a client that lets nothing of a body come gets the head all the same.
func TestHeadBeforeShutWindow(t *testing.T) {
	w := newWorld(t, options{})
	for _, path := range []string{"/small", "/private/x"} {
		conn, f := w.frames(t, path, 0)
		conn.SetReadDeadline(time.Now().Add(patience))
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("%s: no head came: %v", path, err)
			}
			if frame.Header().Type == http2.FrameHeaders {
				break
			}
		}
	}
}

// TestJoinedStreams: answers that share a connection come whole, also beside one that does not end.
func TestJoinedStreams(t *testing.T) {
	end := make(chan bool)
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if n < 0 {
			io.WriteString(rw, "begun")
			rw.(http.Flusher).Flush()
			<-end
			return
		}
		io.WriteString(rw, strings.Repeat("x", n))
	}})
	client := w.client()
	open, err := client.Get(w.https + "/?n=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Body.Close()
	var all sync.WaitGroup
	for i := range 90 { // w.done holds a hundred
		n := i * i * 5 % 9001
		all.Go(func() {
			if _, got := send(t, client, http.MethodGet, fmt.Sprint(w.https, "/?n=", n), nil); len(got) != n {
				t.Errorf("got %d bytes, want %d", len(got), n)
			}
		})
	}
	all.Wait()
	close(end)
	if got, err := io.ReadAll(open.Body); string(got) != "begun" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
