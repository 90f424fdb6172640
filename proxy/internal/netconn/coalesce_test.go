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

// A sinkConn records what is written, until it fails.
type sinkConn struct {
	net.Conn
	got    bytes.Buffer
	fails  error // what the next Write returns, after half of it
	closed bool
}

func (c *sinkConn) Write(p []byte) (int, error) {
	if err := c.fails; err != nil {
		n, _ := c.got.Write(p[:len(p)/2])
		return n, err
	}
	return c.got.Write(p)
}

func (c *sinkConn) Close() error                     { c.closed = true; return nil }
func (c *sinkConn) SetWriteDeadline(time.Time) error { c.fails = nil; return nil }

// TestHold: a small write is held until the next one, or Release.
func TestHold(t *testing.T) {
	under := &sinkConn{}
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

// TestHoldKeepsOrder: writes of any size are written whole and in their order.
func TestHoldKeepsOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		under := &sinkConn{}
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

// TestHoldDoesNotGrow: a large write is not copied into the buffer, which does not become large.
func TestHoldDoesNotGrow(t *testing.T) {
	under := &sinkConn{}
	c := New(under)
	for _, second := range []int{1, maxHeld - 4, maxHeld - 3, 100 * maxHeld} {
		c.Hold()
		io.WriteString(c, "head")
		held := c.coalescer.held
		io.WriteString(c, strings.Repeat("x", second))
		if cap(*held) != maxHeld {
			t.Errorf("after %d bytes there is room for %d, want %d", second, cap(*held), maxHeld)
		}
		if err := c.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestHoldFails: after a write that failed nothing is written, since the client would misunderstand it. Release, at the
// latest, returns the error of a held write.
func TestHoldFails(t *testing.T) {
	for name, write := range map[string]func(c *Conn) error{
		"in Release": func(c *Conn) error {
			io.WriteString(c, "head")
			return c.Release()
		},
		"in the second write": func(c *Conn) error {
			io.WriteString(c, "head")
			if n, err := io.WriteString(c, "body"); n != 0 || err == nil {
				t.Errorf("got %d, %v", n, err)
			}
			return c.Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			under := &sinkConn{fails: io.ErrClosedPipe}
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

// TestHoldNext: a small write is held until the next one, but for holdTime at most. A large one is not held.
func TestHoldNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &sinkConn{}
		c := New(under)
		c.CarriesHTTP2()
		written := func() string { // once the timer has done what it does at this time
			synctest.Wait()
			c.coalescer.mu.Lock()
			defer c.coalescer.mu.Unlock()
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
		time.Sleep(time.Hour) // fake clock
		c.HoldNext(time.Minute)
		io.WriteString(c, "late ")
		time.Sleep(holdTime - 1) // fake clock
		if got := written(); got != "head body " {
			t.Errorf("written too early: %q", got)
		}
		time.Sleep(time.Nanosecond) // fake clock
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

// TestHoldNextIsForHTTP2: over HTTP/1 there may be no further write.
func TestHoldNextIsForHTTP2(t *testing.T) {
	under := &sinkConn{}
	c := New(under)
	c.HoldNext(time.Minute)
	if io.WriteString(c, "all"); under.got.String() != "all" {
		t.Errorf("written: %q", &under.got)
	}
}

// TestHoldNextDoesNotWait: HoldNext does not wait for another stream's write to a client that does not read.
func TestHoldNextDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, under := net.Pipe()
		c := New(under)
		c.CarriesHTTP2()
		go io.WriteString(c, "not read")
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

// TestHoldNextFails: if the timer cannot write what is held, the connection is closed, and the next Write fails.
func TestHoldNextFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, under := net.Pipe()
		defer client.Close()
		c := New(under)
		c.CarriesHTTP2()
		c.HoldNext(time.Minute)
		io.WriteString(c, "not read")
		time.Sleep(holdTime + time.Minute + 1) // fake clock
		synctest.Wait()
		begun := time.Now()
		if _, err := io.WriteString(c, "nor written"); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) > 0 {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		if n, err := client.Read(make([]byte, 1)); n > 0 || err != io.EOF {
			t.Errorf("the client read %d, %v", n, err)
		}
	})
}

// TestHoldEarlyTimer: if the timer of the write deadline fires early, the two writes go on where they were interrupted.
func TestHoldEarlyTimer(t *testing.T) {
	under := &sinkConn{fails: os.ErrDeadlineExceeded}
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
