package proxytest

import (
	"context"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"robotsgate/internal/gatetest"
)

// names are all names that resolve, beside those in /etc/hosts. The
// origins' certificate is for every name below example.com.
var names = map[string][]string{
	"loop.example.com.":          {"127.0.0.1"},
	"second.example.com.":        {"127.0.0.1"},
	"a_b.example.com.":           {"127.0.0.1"},
	"xn--bcher-kva.example.com.": {"127.0.0.1"},
	"metadata.example.com.":      {"169.254.169.254"},
	"mixed.example.com.":         {"10.9.9.9", "127.0.0.1"},
}

// Changing is the address of changing.example.com, which a test may change between two lookups.
var Changing atomic.Pointer[string]

// LookupsFail makes all lookups fail because there is no file descriptor for them.
var LookupsFail atomic.Bool

// Lookups has the names that have been looked up, each with a dot at its end.
var Lookups sync.Map

// Main runs the tests of a package for its TestMain. Lookups of names are answered here, and not by the machine's DNS.
func Main(m *testing.M) {
	gatetest.Parallel()
	log.SetOutput(io.Discard) // Transport's: it quotes what origins send unasked
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		if LookupsFail.Load() {
			return nil, &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		client, server := net.Pipe()
		go resolve(server)
		return client, nil
	}}
	m.Run()
}

// resolve answers one question as a DNS server does over TCP.
func resolve(conn net.Conn) {
	defer conn.Close()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	query := make([]byte, int(length[0])<<8|int(length[1]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	var msg dnsmessage.Message
	if err := msg.Unpack(query); err != nil || len(msg.Questions) != 1 {
		return
	}
	q := msg.Questions[0]
	Lookups.Store(q.Name.String(), true)
	msg.Header = dnsmessage.Header{ID: msg.ID, Response: true, RecursionAvailable: true}
	msg.Additionals = nil
	addrs, known := names[q.Name.String()]
	if now := Changing.Load(); now != nil && q.Name.String() == "changing.example.com." {
		addrs, known = []string{*now}, true
	}
	if !known {
		msg.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		if q.Type == dnsmessage.TypeA {
			msg.Answers = append(msg.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
			})
		}
	}
	answer, err := msg.Pack()
	if err != nil {
		return
	}
	conn.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...))
}
