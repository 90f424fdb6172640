package origin

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	socks "golang.org/x/net/proxy"
)

// answersRequests reports whether a parent proxy answers requests in clear itself, and opens tunnels by CONNECT. A
// parent that speaks SOCKS only passes connections on.
func answersRequests(parent *url.URL) bool { return parent != nil && parent.Scheme != "socks5" }

// A dialer is what package socks dials with.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

func (u *Transport) dialSocks(ctx context.Context, address string) (net.Conn, error) {
	d, err := socks.FromURL(u.parent, dialer(u.dial))
	if err != nil {
		return nil, err
	}
	conn, err := d.(socks.ContextDialer).DialContext(ctx, "tcp", address)
	if inner, ok := errors.AsType[*net.OpError](err); ok && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		return nil, parentFailed(inner.Err) // it has not answered
	}
	return conn, err
}

func (u *Transport) dialConnect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := u.dial(ctx, "tcp", net.JoinHostPort(u.parent.Hostname(), portOf(u.parent)))
	if err != nil {
		return nil, err
	}
	if u.parent.Scheme == "https" {
		c := u.tls.Clone()
		c.ServerName = u.parent.Hostname()
		conn = tls.Client(conn, c)
	}
	if err := u.openTunnel(conn, address); err != nil {
		conn.Close()
		return nil, fmt.Errorf("parent proxy %s: %w", u.parent.Host, parentError(err))
	}
	return conn, nil
}

// openTunnel sends CONNECT to the parent proxy.
func (u *Transport) openTunnel(conn net.Conn, address string) error {
	conn.SetDeadline(time.Now().Add(u.Dialer.Timeout))
	defer conn.SetDeadline(time.Time{})
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {""}}}
	if p := u.parent.User; p != nil {
		password, _ := p.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(p.Username()+":"+password)))
	}
	err := req.Write(conn)
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(&headReader{conn, 64 << 10}), req)
	}
	if err != nil {
		return parentFailed(parentError(err))
	}
	return u.checkConnect(resp)
}

// A headReader reads one byte at a time, so that a buffer does not take what follows the head in the tunnel. It reads
// at most left bytes.
type headReader struct {
	net.Conn
	left int
}

var errLongAnswer = errors.New("the answer to CONNECT is too long")

func (h *headReader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, errLongAnswer
	}
	h.left--
	return h.Conn.Read(p[:min(len(p), 1)])
}

// checkConnect returns an error if the parent's answer to CONNECT opens no tunnel.
func (u *Transport) checkConnect(answer *http.Response) error {
	if err := u.checkLogin(answer); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		// Not the reason phrase of the answer: the parent may repeat the request there, with the login.
		return fmt.Errorf("%w: it answered %s to CONNECT", errNoTunnel, statusText(answer.StatusCode))
	}
	return nil
}

// checkLogin returns an error if an answer is the parent's, which does not accept the login.
func (u *Transport) checkLogin(answer *http.Response) error {
	if answer.StatusCode != http.StatusProxyAuthRequired || !answersRequests(u.parent) {
		return nil
	}
	return parentFailed(fmt.Errorf("it answered %s: the login in egress.proxy is missing or wrong", statusText(answer.StatusCode)))
}

// statusText returns a status with its reason phrase from RFC 9110.
func statusText(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// errNoTunnel is the error of a tunnel that the parent proxy does not open.
var errNoTunnel = errors.New("the parent proxy opens no tunnel")

var errParentAnswer = &answerError{Why: "what came through the parent proxy was not understood"}

// A parentConn is a connection to a parent proxy. If it ends before the parent has sent anything, the parent has failed.
type parentConn struct {
	net.Conn
	answered bool
}

func (c *parentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.answered = c.answered || n > 0
	if !c.answered && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		err = parentFailed(errors.New("it closed the connection without an answer"))
	}
	return n, err
}

// parentError returns the error of a request through a parent if its kind never quotes what the parent has sent.
// Otherwise it returns errParentAnswer: net/http quotes lines that it does not understand, and a parent may
// repeat the request there, with the login.
func parentError(err error) error {
	for _, known := range []error{
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		ErrParent, ErrProhibited, ErrExhausted, errAttempts, errLongAnswer, errNoTunnel, errTwice,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	operation, op := errors.AsType[*net.OpError](err)
	if op && operation.Op == "proxyconnect" { // the TLS handshake with the parent
		return parentFailed(err)
	}
	_, dns := errors.AsType[*net.DNSError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	timeout, ok := errors.AsType[net.Error](err)
	if op || dns || certificate || record || ok && timeout.Timeout() {
		return err
	}
	unread, _ := errors.AsType[*answerError](err)
	if unread == nil {
		return errParentAnswer
	}
	return &answerError{Why: errParentAnswer.Why, Fault: unread.Fault}
}
