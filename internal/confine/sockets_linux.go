//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A network is the sockets inside, as this process uses them.
type network struct {
	sockets       []socket         // which the stub opens
	handlers      []func(net.Conn) // of connections to the socket with the same index; nil: it is one of UDP
	proxy, caught *merged
	names         *names
	reach         destinations
	relays        chan struct{} // a place for each connection to them
	open          []io.Closer
}

// newNetwork returns a network with sockets that are not open yet. The address of the transparent listener is no TCP
// address: the gate would take 0.0.0.0:80 for its own address outside, and refuse requests to port 80 of this machine.
func newNetwork(o *Options) *network {
	n := &network{
		caught: newMerged(&net.UnixAddr{Net: "confined", Name: "inside"}),
		names:  newNames(o.Reach), reach: destinations{}, relays: make(chan struct{}, maxRelays),
	}
	both := func(port uint16, udp bool, handle func(net.Conn)) {
		n.add(socket{UDP: udp, Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}, handle)
		n.add(socket{UDP: udp, Addr: netip.AddrPortFrom(netip.IPv6Unspecified(), port), Optional: true}, handle)
	}
	for _, port := range o.Ports {
		both(port, false, func(conn net.Conn) { n.dispatch(conn, n.caught.deliver) })
	}
	queries := make(chan struct{}, maxDNSConns)
	both(53, true, nil)
	both(53, false, func(conn net.Conn) { n.names.serveStream(conn, queries) })
	taken := slices.Clone(o.Ports)
	for _, r := range o.Reach {
		if r.Path != "" {
			continue
		}
		taken = append(taken, r.Port)
		for _, addr := range r.addresses(n.names) {
			at := netip.AddrPortFrom(addr, r.Port)
			if _, again := n.reach[at]; again {
				continue
			}
			n.reach[at] = r
			// At a caught port there is a listener already, which sees the address too.
			if !slices.Contains(o.Ports, r.Port) {
				n.add(socket{Addr: at, Optional: addr.Is6()}, func(conn net.Conn) { n.dispatch(conn, reset) })
			}
		}
	}
	port := uint16(firstProxyPort)
	for slices.Contains(taken, port) {
		port++
	}
	proxy := netip.AddrPortFrom(loopback4, port)
	n.proxy = newMerged(net.TCPAddrFromAddrPort(proxy))
	n.add(socket{Addr: proxy}, n.proxy.deliver)
	return n
}

// firstProxyPort is above the ports from which connections are made, so that all of it is free inside.
// That the port is known in advance lets the gate and the stub start at the same time.
const firstProxyPort = 61309

func (n *network) add(s socket, handle func(net.Conn)) {
	n.sockets, n.handlers = append(n.sockets, s), append(n.handlers, handle)
}

// attach puts the sockets into use, which the stub has opened. A socket that is nil is missing, since the system has
// no IPv6.
func (n *network) attach(files []*os.File) error {
	for i, file := range files {
		switch {
		case file == nil:
			continue
		case n.sockets[i].UDP:
			conn, err := net.FilePacketConn(file)
			if err != nil {
				return err
			}
			n.open = append(n.open, conn)
			go n.names.servePackets(conn.(*net.UDPConn))
			continue
		}
		l, err := net.FileListener(file)
		if err != nil {
			return err
		}
		n.open = append(n.open, l)
		go serve(l, n.handlers[i])
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
			r.relay(conn)
		}()
	default:
		reset(conn)
	}
}

// close closes all sockets.
func (n *network) close() {
	n.proxy.Close()
	n.caught.Close()
	for _, c := range n.open {
		c.Close()
	}
}

// openAll opens the sockets in the stub, and passes each to the parent.
func openAll(sockets []socket, control int) error {
	for _, s := range sockets {
		file, err := s.open()
		if err != nil && s.Optional {
			if err := sendByte(control, socketMissing); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return failed(fmt.Sprintf("listen on %v inside", s.Addr), err)
		}
		err = unix.Sendmsg(control, []byte{socketFollows}, unix.UnixRights(int(file.Fd())), nil, 0)
		file.Close()
		if err != nil {
			return failed("pass a socket out", err)
		}
	}
	return nil
}
