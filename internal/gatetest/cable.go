package gatetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Cable is a TCP proxy in front of a server, which a test can cut.
type Cable struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state cableState
	flows sync.Cond // signalled when state changes
	conns map[net.Conn]bool
}

type cableState int

const (
	cableWhole cableState = iota
	cableCut
	cableHung
	cableClosed
)

// NewCable returns a cable to a host:port until the test ends.
func NewCable(t testing.TB, target string) *Cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cable{listener: l, target: target, conns: map[net.Conn]bool{}}
	c.flows.L = &c.mu
	go c.accept()
	t.Cleanup(func() {
		c.set(cableClosed)
		l.Close()
	})
	return c
}

// HostPort returns the host:port that leads to the target.
func (c *Cable) HostPort() string { return c.listener.Addr().String() }

// Cut resets all connections, and those that are made, until Restore.
func (c *Cable) Cut() { c.set(cableCut) }

// Hang lets no byte pass until Restore. Connections stay open, and can be made.
func (c *Cable) Hang() { c.set(cableHung) }

// Restore ends the effect of Cut or Hang.
func (c *Cable) Restore() { c.set(cableWhole) }

func (c *Cable) set(s cableState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
	c.flows.Broadcast()
	if s == cableWhole || s == cableHung {
		return
	}
	for conn := range c.conns {
		reset(conn)
	}
	clear(c.conns)
}

// reset closes a connection with a RST.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed
	}
	conn.Close()
}

func (c *Cable) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		go c.serve(conn)
	}
}

// passes waits while the cable hangs, and reports whether bytes pass then.
func (c *Cable) passes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.state == cableHung {
		c.flows.Wait()
	}
	return c.state == cableWhole
}

// add makes a connection one that Cut resets.
func (c *Cable) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == cableCut || c.state == cableClosed {
		reset(conn)
		return
	}
	c.conns[conn] = true
}

func (c *Cable) serve(conn net.Conn) {
	c.add(conn)
	defer c.end(conn)
	if !c.passes() {
		return
	}
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	c.add(server)
	defer c.end(server)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
		go func() {
			c.copy(way[1], way[0])
			done <- struct{}{}
		}()
	}
	<-done
}

func (c *Cable) end(conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

func (c *Cable) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if !c.passes() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
