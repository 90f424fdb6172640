package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	socks "golang.org/x/net/proxy"

	"robotsgate/policy"
)

// A dialer is what package socks wants of one.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

func (u *Upstream) dialSocks(ctx context.Context, address string) (net.Conn, error) {
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

func (u *Upstream) dialConnect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := u.dial(ctx, "tcp", parentAddress(u.parent))
	if err != nil {
		return nil, err
	}
	if u.parent.Scheme == "https" {
		c := u.tls.Clone()
		c.ServerName, c.NextProtos = u.parent.Hostname(), nil // Transport has added h2
		conn = tls.Client(conn, c)
	}
	if err := connectThrough(conn, u.parent, address, u.direct.Timeout); err != nil {
		conn.Close()
		return nil, fmt.Errorf("parent proxy %s: %w", u.parent.Redacted(), err)
	}
	return conn, nil
}

// connectThrough asks a parent proxy for a tunnel.
func connectThrough(conn net.Conn, parent *url.URL, address string, timeout time.Duration) error {
	conn.SetDeadline(time.Now().Add(timeout))
	defer conn.SetDeadline(time.Time{})
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {""}}}
	if p := parent.User; p != nil {
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
	if err := wantsLogin(resp); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s to CONNECT %s", resp.Status, address)
	}
	return nil
}

// A oneHead is read byte by byte, so that what follows it in the tunnel is not
// swallowed by a buffer, and only so far.
type oneHead struct {
	net.Conn
	left int
}

func (h *oneHead) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, errors.New("the answer to CONNECT is too long")
	}
	h.left--
	return h.Conn.Read(p[:min(len(p), 1)])
}

func parentAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// wantsLogin returns an error if a parent's answer is that it knows no such login.
func wantsLogin(answer *http.Response) error {
	if answer.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	return fmt.Errorf("%w: %w", policy.ErrParent, fmt.Errorf("it answered %s: the login in egress.proxy is missing or wrong", answer.Status))
}
