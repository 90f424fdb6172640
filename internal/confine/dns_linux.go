//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// Bounds of DNS.
const (
	maxQuery       = 4096
	maxDNSConns    = 64
	dnsIdleTimeout = 10 * time.Second
)

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
