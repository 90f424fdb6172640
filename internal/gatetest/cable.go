package gatetest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Cable is a TCP proxy in front of a server, which a test can cut.
type Cable struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	state  cableState
	hung   cableWay      // which bytes pass no more while the state is cableHung
	delay  time.Duration // of all bytes, in both directions
	flows  sync.Cond     // signalled when state changes
	conns  map[net.Conn]bool
}

type cableState int

const (
	cableWhole cableState = iota
	cableCut
	cableHung
)

// A cableWay is a direction in which bytes pass.
type cableWay int

const (
	bothWays cableWay = iota
	toServer
	fromServer
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
		c.Cut()
		l.Close()
	})
	return c
}

// HostPort returns the host:port that leads to the target.
func (c *Cable) HostPort() string { return c.listener.Addr().String() }

// Cut resets all connections, and those that are made, until Restore.
func (c *Cable) Cut() { c.set(cableCut) }

// Hang lets no byte pass until Restore. Connections stay open, and can be made.
func (c *Cable) Hang() { c.hang(bothWays) }

// HangRequests lets no byte pass to the server until Restore.
func (c *Cable) HangRequests() { c.hang(toServer) }

// HangAnswers lets no byte pass from the server until Restore.
func (c *Cable) HangAnswers() { c.hang(fromServer) }

func (c *Cable) hang(way cableWay) {
	c.mu.Lock()
	c.hung = way
	c.mu.Unlock()
	c.set(cableHung)
}

// Slow delays all bytes in both directions, until Restore.
func (c *Cable) Slow(delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = delay
}

// Lead resets all connections, and connects later ones with another host:port.
func (c *Cable) Lead(target string) {
	c.mu.Lock()
	c.target = target
	c.mu.Unlock()
	c.Cut()
	c.Restore()
}

// Restore ends the effect of Cut, Hang and Slow.
func (c *Cable) Restore() {
	c.Slow(0)
	c.set(cableWhole)
}

func (c *Cable) set(s cableState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
	c.flows.Broadcast()
	if s != cableCut {
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

// passes waits while the cable hangs, and reports whether bytes pass then in a direction, and how much
// later. With bothWays it reports whether a connection can be made.
func (c *Cable) passes(way cableWay) (delay time.Duration, passes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.state == cableHung && (c.hung == bothWays || c.hung == way) {
		c.flows.Wait()
	}
	return c.delay, c.state != cableCut
}

// add makes a connection one that Cut resets.
func (c *Cable) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == cableCut {
		reset(conn)
		return
	}
	c.conns[conn] = true
}

func (c *Cable) serve(conn net.Conn) {
	c.add(conn)
	defer c.end(conn)
	if _, passes := c.passes(bothWays); !passes {
		return
	}
	c.mu.Lock()
	target := c.target
	c.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	c.add(server)
	defer c.end(server)
	done := make(chan struct{}, 2)
	go func() {
		c.copy(server, conn, toServer)
		done <- struct{}{}
	}()
	go func() {
		c.copy(conn, server, fromServer)
		done <- struct{}{}
	}()
	<-done
}

func (c *Cable) end(conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

func (c *Cable) copy(to io.Writer, from io.Reader, way cableWay) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		delay, passes := c.passes(way)
		if !passes {
			return
		}
		time.Sleep(delay) // real time: other processes are connected
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
