package netconn

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	c := New(under)
	c.Hold()
	io.WriteString(c, "head ")
	if under.got.Len() > 0 {
		t.Errorf("written already: %q", &under.got)
	}
	if n, err := io.WriteString(c, "body "); n != 5 || err != nil || under.got.String() != "head body " {
		t.Errorf("got %d, %v; written: %q", n, err, &under.got)
	}
	io.WriteString(c, "rest ")
	if err := c.Release(); err != nil || under.got.String() != "head body rest " {
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
		c := New(under)
		var want bytes.Buffer
		for range random.IntN(4) {
			c.Hold()
			for range random.IntN(5) {
				p := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, random.IntN(2*maxHeld))
				want.Write(p)
				if n, err := c.Write(p); n != len(p) || err != nil {
					t.Fatalf("got %d, %v", n, err)
				}
			}
			if err := c.Release(); err != nil || !bytes.Equal(under.got.Bytes(), want.Bytes()) {
				t.Fatalf("%d bytes of %d, %v", under.got.Len(), want.Len(), err)
			}
		}
	}
}

// TestJointDoesNotGrow: what is large is not copied, nor does a buffer that is kept become large.
func TestJointDoesNotGrow(t *testing.T) {
	under := &sunkConn{}
	c := New(under)
	for _, second := range []int{1, maxHeld - 4, maxHeld - 3, 100 * maxHeld} {
		c.Hold()
		io.WriteString(c, "head")
		held := c.joint.held
		io.WriteString(c, strings.Repeat("x", second))
		if cap(*held) != maxHeld {
			t.Errorf("after %d bytes there is room for %d, want %d", second, cap(*held), maxHeld)
		}
		if err := c.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestJointFails: behind a write that failed nothing is written, since the client would take it for what
// comes next; and who believes that it was sent is told, at the latest at the parting.
func TestJointFails(t *testing.T) {
	for name, write := range map[string]func(c *Conn) error{
		"at the parting": func(c *Conn) error {
			io.WriteString(c, "head")
			return c.Release()
		},
		"at the second piece": func(c *Conn) error {
			io.WriteString(c, "head")
			if n, err := io.WriteString(c, "body"); n != 0 || err == nil {
				t.Errorf("got %d, %v", n, err)
			}
			return c.Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			under := &sunkConn{fails: io.ErrClosedPipe}
			c := New(under)
			c.Hold()
			if err := write(c); !errors.Is(err, io.ErrClosedPipe) {
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
			c.Hold()
			io.WriteString(c, "more")
			if err := c.Release(); err == nil || under.got.String() != before {
				t.Errorf("got %v; written: %q", err, &under.got)
			}
		})
	}
}

// TestJoinNext: a small piece waits for the next Write, a moment at most, and one that is not small not at all.
func TestJoinNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &sunkConn{}
		c := New(under)
		c.joint.http2 = true
		written := func() string { // once the timer has done what it does at this time
			synctest.Wait()
			c.joint.mu.Lock()
			defer c.joint.mu.Unlock()
			return under.got.String()
		}
		c.HoldNext(time.Minute)
		io.WriteString(c, "head ")
		if got := written(); got != "" {
			t.Errorf("written already: %q", got)
		}
		io.WriteString(c, "body ")
		if got := written(); got != "head body " {
			t.Errorf("written: %q", got)
		}
		time.Sleep(time.Hour)
		c.HoldNext(time.Minute)
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
		c.HoldNext(time.Minute)
		c.CancelHold()
		io.WriteString(c, "last")
		if got := written(); got != "head body late alone last" {
			t.Errorf("written: %q", got)
		}
		c.HoldNext(time.Minute)
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
	c := New(under)
	c.HoldNext(time.Minute)
	if io.WriteString(c, "all"); under.got.String() != "all" {
		t.Errorf("written: %q", &under.got)
	}
}

// TestJoinNextDoesNotWait: a handler is not held up by who writes to a client that does not read.
func TestJoinNextDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, under := net.Pipe()
		c := New(under)
		c.joint.http2 = true
		go io.WriteString(c, "nobody reads it")
		synctest.Wait()
		done := make(chan bool)
		go func() {
			c.HoldNext(time.Minute)
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
		c := New(under)
		c.joint.http2 = true
		c.HoldNext(time.Minute)
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
	c := New(under)
	c.write.until = time.Now().Add(time.Hour)
	c.Hold()
	io.WriteString(c, "head")
	if n, err := io.WriteString(c, "body"); n != 4 || err != nil || under.got.String() != "headbody" {
		t.Errorf("got %d, %v; written: %q", n, err, &under.got)
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}
