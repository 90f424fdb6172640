package confine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// The network of synthetic addresses looks public, since many programs refuse to fetch from special-purpose addresses
// (RFC 6890). It is part of a network of the US Department of Defense without public services; no packet leaves for
// it. Its first 256 addresses are for the names of Options.Reach.
var (
	firstReach = netip.AddrFrom4([4]byte{7, 0, 0, 1})
	synthetic  = netip.MustParsePrefix("7.0.0.0/15")
	loopback4  = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6  = netip.IPv6Loopback()
)

const (
	reachAddresses = 256
	allAddresses   = 1 << 17
	answerTTL      = 60 // seconds
)

// names gives every name an address, which is computed from the name: so it is stable, and takes no
// table that queries could fill. Two names may have the same address, since the gate does not find the
// name by the address: it reads the name from TLS or HTTP.
type names struct {
	reach map[string]netip.Addr // each has an address of its own
}

func newNames(reach []Reach) *names {
	n := &names{reach: map[string]netip.Addr{}}
	next := firstReach
	for _, r := range reach {
		if _, err := netip.ParseAddr(r.Host); err == nil || r.Path != "" || isLocalhost(r.Host) {
			continue
		}
		if _, has := n.reach[r.Host]; !has {
			n.reach[r.Host] = next
			next = next.Next()
		}
	}
	return n
}

// address returns the address of a canonical name.
func (n *names) address(name string) netip.Addr {
	if addr, is := n.reach[name]; is {
		return addr
	}
	sum := sha256.Sum256([]byte(name))
	// All but the addresses for reach, and the last one, which is the broadcast address of a /15.
	offset := reachAddresses + binary.BigEndian.Uint32(sum[:])%(allAddresses-reachAddresses-1)
	base := synthetic.Addr().As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(base[:])+offset)))
}

// canonicalName returns a name in lower case, without the dot at its end.
func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// isLocalhost reports whether a canonical name is always this host: RFC 6761, section 6.3.
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// reply returns the answer to a DNS query; nil if the message gets no answer. Every name exists, and has
// one address. The gate finds out which names do not exist: it looks up a name only if it permits the request.
func (n *names) reply(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	reply := dnsmessage.Message{Header: dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
	}}
	q, err := p.Question()
	one := err == nil && p.SkipQuestion() == dnsmessage.ErrSectionDone // RFC 9619
	if h.OpCode != 0 || !one || q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeRefused
	} else {
		reply.Questions = []dnsmessage.Question{q}
		reply.Answers = n.answer(q)
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// answer returns the records for a question: an address, or none.
func (n *names) answer(q dnsmessage.Question) []dnsmessage.Resource {
	name := canonicalName(q.Name.String())
	var body dnsmessage.ResourceBody
	switch {
	case name == "":
		return nil
	case q.Type == dnsmessage.TypeA && isLocalhost(name):
		body = &dnsmessage.AResource{A: loopback4.As4()}
	case q.Type == dnsmessage.TypeA:
		body = &dnsmessage.AResource{A: n.address(name).As4()}
	case q.Type == dnsmessage.TypeAAAA && isLocalhost(name):
		body = &dnsmessage.AAAAResource{AAAA: loopback6.As16()}
	default:
		return nil
	}
	return []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: answerTTL},
		Body:   body,
	}}
}

// Bounds of DNS.
const (
	maxQuery       = 4096
	maxDNSConns    = 64
	dnsIdleTimeout = 10 * time.Second
)

// acceptPause is how long a server waits after an error such as that of too many open files.
const acceptPause = 20 * time.Millisecond

// servePackets answers queries over UDP. The answer comes from the address that was asked: its control
// message, ip(7) IP_PKTINFO, is that of the query.
func (n *names) servePackets(conn *net.UDPConn) {
	query, oob := make([]byte, maxQuery), make([]byte, 128)
	for {
		size, oobSize, _, from, err := conn.ReadMsgUDPAddrPort(query, oob)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
			continue
		}
		if reply := n.reply(query[:size]); reply != nil {
			_, _, _ = conn.WriteMsgUDPAddrPort(reply, oob[:oobSize], from)
		}
	}
}

// serveStream answers queries over TCP: RFC 1035, section 4.2.2. busy bounds the connections at once:
// if it is full, the connection is closed.
func (n *names) serveStream(conn net.Conn, busy chan struct{}) {
	select {
	case busy <- struct{}{}:
	default:
		conn.Close()
		return
	}
	go func() {
		defer func() { conn.Close(); <-busy }()
		var length [2]byte
		query := make([]byte, maxQuery)
		for {
			_ = conn.SetDeadline(time.Now().Add(dnsIdleTimeout))
			if _, err := io.ReadFull(conn, length[:]); err != nil {
				return
			}
			size := int(binary.BigEndian.Uint16(length[:]))
			if size > maxQuery {
				return
			}
			if _, err := io.ReadFull(conn, query[:size]); err != nil {
				return
			}
			reply := n.reply(query[:size])
			if reply == nil {
				return
			}
			if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
				return
			}
		}
	}()
}
