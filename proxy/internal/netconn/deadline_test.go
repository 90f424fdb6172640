package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// counting counts how often the timer of a connection is set.
type counting struct {
	net.Conn
	sets int
}

func (c *counting) SetWriteDeadline(t time.Time) error {
	c.sets++
	return c.Conn.SetWriteDeadline(t)
}

// A Conn's deadline is exact although its timer is set rarely. Every row is run with the connection of
// package net and with a Conn: the Write of 4 bytes has the same outcome at the same time.
func TestWriteDeadline(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name   string
		before []time.Duration // deadlines, from when each is set; 0: none. A second passes after each
		during map[time.Duration]time.Duration
		read   map[time.Duration]int // so many bytes, at these times of the Write
		want   outcome
	}{
		{"none", nil, nil, map[time.Duration]int{2 * s: 4}, outcome{4, false, 2 * s}},
		{"one", []time.Duration{3 * s}, nil, nil, outcome{0, true, 2 * s}},
		{"cleared", []time.Duration{3 * s, 0}, nil, map[time.Duration]int{9 * s: 4}, outcome{4, false, 9 * s}},
		{"postponed", []time.Duration{3 * s, 9 * s}, nil, nil, outcome{0, true, 8 * s}},
		{"postponed in the middle", []time.Duration{3 * s, 9 * s}, nil, map[time.Duration]int{s / 2: 3}, outcome{3, true, 8 * s}},
		{"cleared, and postponed in the middle", []time.Duration{3 * s, 0}, nil, map[time.Duration]int{s / 2: 3, 5 * s: 1}, outcome{4, false, 5 * s}},
		{"brought forward", []time.Duration{9 * s, 3 * s}, nil, nil, outcome{0, true, 2 * s}},
		{"cleared and set again", []time.Duration{3 * s, 0, 5 * s}, nil, nil, outcome{0, true, 4 * s}},
		{"past", []time.Duration{-s}, nil, nil, outcome{0, true, 0}},
		{"past, and cleared", []time.Duration{-s, 0}, nil, map[time.Duration]int{s: 4}, outcome{4, false, s}},
		{"over before the Write", []time.Duration{s / 2}, nil, nil, outcome{0, true, 0}},
		{"over before the Write, and cleared", []time.Duration{s / 2, 0}, nil, map[time.Duration]int{s: 4}, outcome{4, false, s}},
		{"over before the Write, and set again", []time.Duration{s / 2, 3 * s}, nil, nil, outcome{0, true, 2 * s}},
		{"interrupted", []time.Duration{9 * s}, map[time.Duration]time.Duration{2 * s: -s}, nil, outcome{0, true, 2 * s}},
		{"interrupted without one", nil, map[time.Duration]time.Duration{2 * s: -s}, nil, outcome{0, true, 2 * s}},
		{"interrupted after it was postponed", []time.Duration{3 * s, 0}, map[time.Duration]time.Duration{7 * s: -s}, nil, outcome{0, true, 7 * s}},
		{"postponed during the Write", []time.Duration{3 * s}, map[time.Duration]time.Duration{s: 6 * s}, nil, outcome{0, true, 7 * s}},
		{"brought forward during the Write", []time.Duration{9 * s}, map[time.Duration]time.Duration{s: 2 * s}, nil, outcome{0, true, 3 * s}},
	} {
		checkDeadlines(t, c.name, c.before, c.during, net.Conn.SetWriteDeadline, c.want, func(client, conn net.Conn) (int, error) {
			for at, n := range c.read {
				time.AfterFunc(at, func() { io.ReadFull(client, make([]byte, n)) })
			}
			return conn.Write([]byte("four"))
		})
	}
}

// An outcome is what a Write or a Read returns, and after what time.
type outcome struct {
	n      int
	failed bool
	after  time.Duration
}

// checkDeadlines sets deadlines before and during do, on a net.Conn and on a Conn.
func checkDeadlines(t *testing.T, name string, before []time.Duration, during map[time.Duration]time.Duration,
	setDeadline func(net.Conn, time.Time) error, want outcome, do func(client, conn net.Conn) (int, error)) {
	synctest.Test(t, func(t *testing.T) {
		for _, way := range []string{"net.Conn", "Conn"} {
			client, conn := net.Pipe()
			if way == "Conn" {
				conn = New(conn)
			}
			set := func(d time.Duration) {
				var at time.Time
				if d != 0 {
					at = time.Now().Add(d)
				}
				if err := setDeadline(conn, at); err != nil {
					t.Error(err)
				}
			}
			for _, d := range before {
				set(d)
				time.Sleep(time.Second) // fake clock
			}
			begun := time.Now()
			for at, d := range during {
				time.AfterFunc(at, func() { set(d) })
			}
			n, err := do(client, conn)
			if got := (outcome{n, err != nil, time.Since(begun)}); got != want || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, %s: got %v (%v), want %v", name, way, got, err, want)
			}
			client.Close()
			conn.Close()
		}
	})
}

// TestReadDeadline is the same for a Read.
func TestReadDeadline(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name   string
		before []time.Duration // deadlines, from when each is set; 0: none. A second passes after each
		during map[time.Duration]time.Duration
		comes  time.Duration // when data arrives; 0: never
		want   outcome
	}{
		{"none", nil, nil, 2 * s, outcome{1, false, 2 * s}},
		{"one", []time.Duration{3 * s}, nil, 0, outcome{0, true, 2 * s}},
		{"one, in time", []time.Duration{3 * s}, nil, s, outcome{1, false, s}},
		{"cleared", []time.Duration{3 * s, 0}, nil, 9 * s, outcome{1, false, 9 * s}},
		{"postponed", []time.Duration{3 * s, 9 * s}, nil, 0, outcome{0, true, 8 * s}},
		{"brought forward", []time.Duration{9 * s, 3 * s}, nil, 0, outcome{0, true, 2 * s}},
		{"past", []time.Duration{-s}, nil, 0, outcome{0, true, 0}},
		{"past, and cleared", []time.Duration{-s, 0}, nil, s, outcome{1, false, s}},
		{"past, and set again", []time.Duration{-s, 3 * s}, nil, 0, outcome{0, true, 2 * s}},
		{"interrupted without one", nil, map[time.Duration]time.Duration{2 * s: -s}, 0, outcome{0, true, 2 * s}},
		{"interrupted after it was postponed", []time.Duration{3 * s, 0}, map[time.Duration]time.Duration{7 * s: -s}, 0, outcome{0, true, 7 * s}},
		{"postponed during the Read", []time.Duration{3 * s}, map[time.Duration]time.Duration{s: 6 * s}, 0, outcome{0, true, 7 * s}},
		{"brought forward during the Read", []time.Duration{9 * s}, map[time.Duration]time.Duration{s: 2 * s}, 0, outcome{0, true, 3 * s}},
	} {
		checkDeadlines(t, c.name, c.before, c.during, net.Conn.SetReadDeadline, c.want, func(client, conn net.Conn) (int, error) {
			if c.comes > 0 {
				time.AfterFunc(c.comes, func() { client.Write([]byte{1}) })
			}
			return conn.Read(make([]byte, 4))
		})
	}
}

// Answer after answer the timer is set once only; and SetDeadline is for Read too.
func TestWriteDeadlineSetRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, gate := net.Pipe()
		defer client.Close()
		defer gate.Close()
		timer := &counting{Conn: gate}
		conn := New(timer)
		go io.Copy(io.Discard, client)
		for range 100 {
			conn.SetWriteDeadline(time.Now().Add(time.Hour))
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			conn.SetWriteDeadline(time.Time{})
			time.Sleep(time.Second) // fake clock
		}
		if timer.sets != 1 {
			t.Errorf("the timer was set %d times, want 1", timer.sets)
		}
		conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read: %v, want its deadline", err)
		}
	})
}

// BenchmarkWriteDeadline sets and clears a deadline, as net/http does for every answer.
func BenchmarkWriteDeadline(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	for name, conn := range map[string]net.Conn{"net.Conn": conn, "Conn": New(conn)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				conn.SetWriteDeadline(time.Now().Add(time.Hour))
				conn.SetWriteDeadline(time.Time{})
			}
		})
	}
}
