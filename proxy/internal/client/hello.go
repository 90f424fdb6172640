package client

import (
	"crypto/tls"
	"errors"
	"net"
)

// maxHello bounds what is read of a connection to find the end of its ClientHello, in bytes. The heads of the records count
// too, and what the client has sent after it. Today's clients send 200 to 3,000 bytes.
const maxHello = 64 << 10

// The errors of ReadHello that are not those of the connection.
var (
	ErrNotHello  = errors.New("it does not begin with a ClientHello that the gate understands")
	ErrLongHello = errors.New("its ClientHello is too long")
)

// A Hello is the beginning of a TLS connection.
type Hello struct {
	ServerName string // as the client has sent it; empty: it has sent none
	Read       []byte // all that has been read of the connection, at least the ClientHello
}

// ReadHello reads a connection up to the end of its ClientHello, and answers nothing. The caller sets a deadline.
//
// It does not parse anything: a server of crypto/tls reads the ClientHello and is interrupted, so that the name is the
// one that crypto/tls finds again in these bytes in the handshake. Of a ClientHello with encrypted parts (RFC 9849) it
// is the name in the outer one.
func ReadHello(c net.Conn) (*Hello, error) {
	h := &Hello{}
	tap := &helloTap{Conn: c, hello: h}
	found := false
	_ = tls.Server(tap, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		found, h.ServerName = true, info.ServerName
		return nil, errInterrupted
	}}).Handshake() // it fails in any case
	if found {
		return h, nil
	}
	if tap.err != nil {
		return nil, tap.err
	}
	return nil, ErrNotHello
}

var errInterrupted = errors.New("the ClientHello has been read")

// A helloTap keeps what is read, and drops what is written.
type helloTap struct {
	net.Conn
	hello *Hello
	err   error // of the connection, or ErrLongHello
}

func (t *helloTap) Read(p []byte) (n int, err error) {
	have := len(t.hello.Read)
	if have >= maxHello {
		t.err = ErrLongHello
		return 0, t.err
	}
	n, err = t.Conn.Read(p[:min(len(p), maxHello-have)])
	t.hello.Read = append(t.hello.Read, p[:n]...)
	if err != nil {
		t.err = err
	}
	return n, err
}

func (t *helloTap) Write(p []byte) (int, error) { return len(p), nil }
