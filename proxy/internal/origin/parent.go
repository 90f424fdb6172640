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
	"time"

	socks "golang.org/x/net/proxy"

	"robotsgate/policy"
	"robotsgate/proxy/internal/memory"
)

// A dialer is what package socks wants of one.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

func (u *Transport) dialSocks(ctx context.Context, address string) (net.Conn, error) {
	var auth *socks.Auth
	if p := u.parent.User; p != nil {
		password, _ := p.Password()
		auth = &socks.Auth{User: p.Username(), Password: password}
	}
	d, err := socks.SOCKS5("tcp", parentAddress(u.parent), auth, dialer(u.dial))
	if err != nil {
		return nil, err
	}
	return d.(socks.ContextDialer).DialContext(ctx, "tcp", address)
}

func (u *Transport) dialConnect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := u.dial(ctx, "tcp", parentAddress(u.parent))
	if err != nil {
		return nil, err
	}
	if u.parent.Scheme == "https" {
		c := u.tls.Clone()
		c.ServerName, c.NextProtos = u.parent.Hostname(), nil // Transport has added h2
		conn = tls.Client(conn, c)
	}
	if err := u.connectThrough(conn, address); err != nil {
		conn.Close()
		return nil, fmt.Errorf("parent proxy %s: %w", u.parent.Host, parentError(err))
	}
	return conn, nil
}

// connectThrough asks a parent proxy for a tunnel.
func (u *Transport) connectThrough(conn net.Conn, address string) error {
	conn.SetDeadline(time.Now().Add(u.Dialer.Timeout))
	defer conn.SetDeadline(time.Time{})
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {""}}}
	if p := u.parent.User; p != nil {
		password, _ := p.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(p.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(&oneHead{conn, 64 << 10}), req)
	if err != nil {
		return err
	}
	return u.connectRefused(resp)
}

// connectRefused returns an error if a parent's answer to CONNECT opens no tunnel.
func (u *Transport) connectRefused(answer *http.Response) error {
	if err := u.wantsLogin(answer); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return &parentStatus{answer.StatusCode}
	}
	return nil
}

// A parentStatus is a parent's answer to CONNECT that opens no tunnel. The words are the gate's
// own: a parent may repeat the request in its reason phrase, with the login.
type parentStatus struct{ code int }

func (e *parentStatus) Error() string {
	return "the parent proxy answered " + statusWords(e.code) + " to CONNECT"
}

// statusWords are a status with the reason phrase that RFC 9110 has for it.
func statusWords(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

var errParentAnswer = errors.New("what came through the parent proxy was not understood")

// parentError returns an error that a request through a parent ended with if it is of a kind
// that never quotes what the parent has sent, else errParentAnswer: net/http quotes lines that
// it does not understand, and a parent may repeat the request in them, with the login.
func parentError(err error) error {
	for _, known := range []error{
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		policy.ErrParent, policy.ErrProhibited, policy.ErrExhausted, memory.ErrLimit, errAttempts, errLongAnswer,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	var status *parentStatus
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &status), errors.As(err, &op), errors.As(err, &dns), errors.As(err, &certificate), errors.As(err, &record),
		errors.As(err, &timeout) && timeout.Timeout():
		return err
	}
	return errParentAnswer
}

var errLongAnswer = errors.New("the answer to CONNECT is too long")

// A oneHead is read byte by byte, so that what follows it in the tunnel is not
// swallowed by a buffer, and only so far.
type oneHead struct {
	net.Conn
	left int
}

func (h *oneHead) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, errLongAnswer
	}
	h.left--
	return h.Conn.Read(p[:min(len(p), 1)])
}

// tunnels reports whether a parent proxy is one that is asked for tunnels by CONNECT, and answers requests in clear
// itself.
func tunnels(parent *url.URL) bool {
	return parent != nil && parent.Scheme != "socks5"
}

func parentAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// wantsLogin returns an error if a parent's answer is that it knows no such login.
func (u *Transport) wantsLogin(answer *http.Response) error {
	if answer.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	return fmt.Errorf("%w: %w", policy.ErrParent, fmt.Errorf("it answered %s: the login in %s is missing or wrong", statusWords(answer.StatusCode), u.login))
}
