package client

import (
	"errors"
	"io"
	"net/netip"
)

// SOCKS5 is spoken with some hundred lines of our own: golang.org/x/net has only the client's half, and servers such
// as go-socks5 accept and dial themselves, while here the listener, its limits and the transport exist already.

// The reasons why a SOCKS connection is refused. Those of what comes after the request are as for redirected
// connections.
const (
	SocksVersion     ConnRefusal = "version"      // SOCKS4
	SocksMalformed   ConnRefusal = "malformed"    // the greeting, the login or the request is not SOCKS5
	SocksMethod      ConnRefusal = "method"       // the client offers no method that the gate accepts
	SocksLogin       ConnRefusal = "login"        // unknown_clients is refuse, and no crawler matches
	SocksCommand     ConnRefusal = "command"      // BIND or UDP ASSOCIATE
	SocksAddressType ConnRefusal = "address-type" // neither a name nor an address of IPv4 or IPv6
	SocksDenied      ConnRefusal = "denied"       // the egress rules or an override forbid the destination
	SocksUnreachable ConnRefusal = "unreachable"  // the destination is no host name, or has no port
)

var socksAdvice = map[ConnRefusal]string{
	SocksVersion:     "their clients speak SOCKS4, which the gate does not: give them its address with socks5h:// or http:// in front",
	SocksMalformed:   "they begin like SOCKS5, but do not go on so",
	SocksMethod:      "their clients offer neither no authentication nor user name and password",
	SocksLogin:       "no crawler matches their clients; give a login in the proxy's URL, as socks5h://USER:PASSWORD@HOST:PORT, or add a crawler",
	SocksCommand:     "they ask for BIND or UDP ASSOCIATE, which the gate does not serve; use CONNECT",
	SocksAddressType: "they ask for an address that is neither a name nor IPv4 nor IPv6",
	SocksDenied:      "the egress rules or an override forbid their destinations; the records of their requests say more",
	SocksUnreachable: "their destinations are no host names, or have no port",
	BadName:          "their TLS server name is not a host name, or not that of the SOCKS request",
	BadHello:         redirectAdvice[BadHello],
	ClearHTTP2:       redirectAdvice[ClearHTTP2],
	NotHTTP:          "they speak neither TLS nor HTTP, and the gate serves nothing else",
	Incomplete:       "no complete SOCKS request, ClientHello or request line has arrived in time",
}

// NewSocks returns a counter of SOCKS connections.
func NewSocks() *ConnCounter { return newConnCounter("SOCKS connections", socksAdvice) }

// Versions, methods, commands, types of addresses and replies (RFC 1928, 3 to 6; RFC 1929, 2).
const (
	socks4       = 4
	socks5       = 5
	loginVersion = 1

	NoLogin        byte = 0x00
	LoginMethod    byte = 0x02
	NoneAcceptable byte = 0xff

	socksConnect = 1
	socksIPv4    = 1
	socksName    = 3
	socksIPv6    = 4

	SocksSucceeded     byte = 0x00
	SocksFailed        byte = 0x01
	SocksNotAllowed    byte = 0x02
	SocksNoHost        byte = 0x04
	socksNoCommand     byte = 0x07
	socksNoAddressType byte = 0x08
)

// IsSocks5 reports whether a connection that begins like SOCKS is in SOCKS5.
func IsSocks5(first byte) bool { return first == socks5 }

// ErrSocks is the error of bytes that are not SOCKS5. Other errors are those of the connection.
var ErrSocks = errors.New("it is not SOCKS5")

// ReadSocksGreeting reads the methods that a client offers, at most 257 bytes.
func ReadSocksGreeting(r io.Reader) (methods []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if head[0] != socks5 {
		return nil, ErrSocks
	}
	methods = make([]byte, head[1])
	_, err = io.ReadFull(r, methods)
	return methods, err
}

// ReadSocksLogin reads a user name and a password (RFC 1929, 2), at most 513 bytes.
func ReadSocksLogin(r io.Reader) (user, password string, err error) {
	var version [1]byte
	if _, err := io.ReadFull(r, version[:]); err != nil {
		return "", "", err
	}
	if version[0] != loginVersion {
		return "", "", ErrSocks
	}
	if user, err = readSocksText(r); err != nil {
		return "", "", err
	}
	password, err = readSocksText(r)
	return user, password, err
}

// readSocksText reads a text with its length before it.
func readSocksText(r io.Reader) (string, error) {
	var length [1]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", err
	}
	text := make([]byte, length[0])
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// A SocksRequest is a request to connect.
type SocksRequest struct {
	Host string // a name as the client has sent it, or an address without brackets
	Port uint16
}

// ReadSocksRequest reads a request (RFC 1928, 4), at most 262 bytes. The reply is the one to a request that can't be
// served, with the reason. An error without a reply is that of the connection.
func ReadSocksRequest(r io.Reader) (req SocksRequest, reply byte, refused ConnRefusal, err error) {
	var head [4]byte // version, command, reserved, type of address
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return req, 0, "", err
	}
	switch {
	case head[0] != socks5:
		return req, SocksFailed, SocksMalformed, nil
	case head[1] != socksConnect: // BIND, UDP ASSOCIATE
		return req, socksNoCommand, SocksCommand, nil
	}
	switch head[3] {
	case socksIPv4, socksIPv6:
		var address [16]byte
		n := 4
		if head[3] == socksIPv6 {
			n = 16
		}
		if _, err := io.ReadFull(r, address[:n]); err != nil {
			return req, 0, "", err
		}
		addr, _ := netip.AddrFromSlice(address[:n])
		req.Host = addr.Unmap().String()
	case socksName:
		if req.Host, err = readSocksText(r); err != nil {
			return req, 0, "", err
		}
	default:
		return req, socksNoAddressType, SocksAddressType, nil
	}
	var port [2]byte
	_, err = io.ReadFull(r, port[:])
	req.Port = uint16(port[0])<<8 | uint16(port[1])
	return req, 0, "", err
}

// SocksReply returns a reply without an address of the gate, since the gate dials for each request anew.
func SocksReply(reply byte) []byte { return []byte{socks5, reply, 0, socksIPv4, 0, 0, 0, 0, 0, 0} }

// SocksChoice returns the answer to a greeting.
func SocksChoice(method byte) []byte { return []byte{socks5, method} }

// SocksLoginReply returns the answer to a login.
func SocksLoginReply(ok bool) []byte {
	if ok {
		return []byte{loginVersion, 0}
	}
	return []byte{loginVersion, 1}
}
