//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A plan is which sockets the stub opens, and what this process does with each.
type plan struct {
	sockets []socket
	uses    []use // of the socket with the same index
	proxy   netip.AddrPort
	names   *names
	reach   destinations
}

type use int

const (
	forProxy use = iota
	forCatching
	forQueries // DNS
	forReach
)

func (p *plan) add(u use, s socket) {
	p.sockets, p.uses = append(p.sockets, s), append(p.uses, u)
}

func newPlan(o *Options) *plan {
	p := &plan{names: newNames(o.Reach), reach: destinations{}}
	any4, any6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	both := func(u use, port uint16, udp bool) {
		p.add(u, socket{UDP: udp, Addr: netip.AddrPortFrom(any4, port)})
		p.add(u, socket{UDP: udp, Addr: netip.AddrPortFrom(any6, port), Optional: true})
	}
	for _, port := range o.Ports {
		both(forCatching, port, false)
	}
	both(forQueries, 53, true)
	both(forQueries, 53, false)
	hosts, _ := os.ReadFile("/etc/hosts")
	taken := slices.Clone(o.Ports)
	for _, r := range o.Reach {
		if r.Path != "" {
			continue
		}
		taken = append(taken, r.Port)
		for _, addr := range r.addresses(p.names, hosts) {
			at := netip.AddrPortFrom(addr, r.Port)
			if _, again := p.reach[at]; again {
				continue
			}
			p.reach[at] = r
			// At a caught port there is a listener already, which sees the address too.
			if !slices.Contains(o.Ports, r.Port) {
				p.add(forReach, socket{Addr: at, Optional: addr.Is6()})
			}
		}
	}
	port := uint16(firstProxyPort)
	for slices.Contains(taken, port) {
		port++
	}
	p.proxy = netip.AddrPortFrom(loopback4, port)
	p.add(forProxy, socket{Addr: p.proxy})
	return p
}

// firstProxyPort is above the ports from which connections are made, so that all of it is free inside.
// That the port is known in advance lets the gate and the stub start at the same time.
const firstProxyPort = 61309

// A network is the sockets inside, as this process uses them.
type network struct {
	proxy, caught *merged
	names         *names
	reach         destinations
	relays        chan struct{} // a place for each connection to them
	all           []interface{ Close() error }
}

// network returns a network without sockets, with listeners that accept nothing yet. The address of the
// transparent one is no TCP address: the gate would take 0.0.0.0:80 for its own address outside, and
// refuse requests to port 80 of this machine.
func (p *plan) network() *network {
	inside := &net.UnixAddr{Net: "confined", Name: "inside"}
	return &network{proxy: newMerged(net.TCPAddrFromAddrPort(p.proxy)), caught: newMerged(inside), names: p.names, reach: p.reach, relays: make(chan struct{}, maxRelays)}
}

// attach puts the sockets into use, which are in the order of the plan. A socket that is nil is missing,
// since the system has no IPv6.
func (n *network) attach(p *plan, files []*os.File) error {
	busy := make(chan struct{}, maxDNSConns)
	handle := map[use]func(net.Conn){
		forProxy:    n.proxy.deliver,
		forCatching: func(conn net.Conn) { n.dispatch(conn, n.caught.deliver) },
		forQueries:  func(conn net.Conn) { n.names.serveStream(conn, busy) },
		forReach:    func(conn net.Conn) { n.dispatch(conn, reset) },
	}
	for i, file := range files {
		switch {
		case file == nil:
			continue
		case p.sockets[i].UDP:
			conn, err := net.FilePacketConn(file)
			if err != nil {
				return err
			}
			n.all = append(n.all, conn)
			go n.names.servePackets(conn.(*net.UDPConn))
			continue
		}
		l, err := net.FileListener(file)
		if err != nil {
			return err
		}
		n.all = append(n.all, l)
		go serve(l, handle[p.uses[i]])
	}
	return nil
}

// maxRelays bounds the connections to destinations of Options.Reach. Each takes two descriptors, and more to pass
// data on within the kernel.
const maxRelays = 512

// dispatch relays a connection to a destination of Options.Reach, or calls otherwise.
func (n *network) dispatch(conn net.Conn, otherwise func(net.Conn)) {
	r, is := n.reach.of(conn)
	if !is {
		otherwise(conn)
		return
	}
	select {
	case n.relays <- struct{}{}:
		go func() {
			defer func() { <-n.relays }()
			r.relay(context.Background(), conn)
		}()
	default:
		reset(conn)
	}
}

// close closes all sockets.
func (n *network) close() {
	n.proxy.Close()
	n.caught.Close()
	for _, c := range n.all {
		c.Close()
	}
}

// openAll opens the sockets in the stub, and passes each to the parent.
func openAll(sockets []socket, control int) error {
	for _, s := range sockets {
		fd, err := s.open()
		if err != nil && s.Optional {
			if err := sendByte(control, socketMissing); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return failed(fmt.Sprintf("listen on %v inside", s.Addr), err)
		}
		if err := sendSocket(control, fd); err != nil {
			return failed("pass a socket out", err)
		}
		unix.Close(fd)
	}
	return nil
}
