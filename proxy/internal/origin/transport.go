// Package origin connects to origins. Start with [New]: a [Transport] sends requests and opens tunnels, directly or
// through a parent proxy, and refuses destinations that the egress rules forbid.
//
// net/http's Transport sends them, see [netHTTP]. [Conns] has the connections of all Transports.
package origin

// Where to change what.
//
//	where the gate may connect to  guard.go
//	how a request is sent          nethttp.go, with upload.go for bodies
//	what a client is told of errors  explain.go

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

// Config says what a Transport may connect to, and how. Special-purpose addresses (RFC 6890), such as those
// of loopback and of private networks, are forbidden unless AllowPrivate permits them.
type Config struct {
	AllowPrivate          []netip.Prefix `yaml:"allow_private" doc:"an address range with its length, and no bits set behind it, such as 10.0.0.0/8"`                                                                // special-purpose addresses that are permitted
	DenyHosts             []glob.Glob    `yaml:"deny_hosts" glob:"host" doc:"a host, such as \"*.example.com\""`                                                                                                     // hosts that are forbidden, by their name or address
	Ports                 []int          `yaml:"ports" doc:"a port, such as 443"`                                                                                                                                    // that may be connected to; empty: all
	Parent                *url.URL       `yaml:"proxy" doc:"the URL of a proxy, http://, https:// or socks5://, with special characters in a password percent-encoded, such as http://proxy.lan:3128" secret:"true"` // a proxy to go through: http, https or socks5; nil: none
	CAFile                string         `yaml:"ca_file" doc:"a PEM file, such as /etc/ssl/company-ca.pem" path:"yes"`                                                                                               // further roots, which the caller reads into Roots; "": none
	DialTimeout           time.Duration  `yaml:"dial_timeout" positive:"yes"`                                                                                                                                        // 0: the default below, as for the next two
	ResponseHeaderTimeout time.Duration  `yaml:"response_header_timeout" positive:"yes"`
	IdleTimeout           time.Duration  `yaml:"idle_timeout" positive:"yes"`                                   // of a connection that is kept for further requests
	MaxConnsPerHost       int            `yaml:"max_conns_per_host" doc:"a whole number, 0 or more, such as 8"` // 0: no limit

	Roots *x509.CertPool          // for the certificates of origins; nil: the system's
	Own   func() []netip.AddrPort // where the gate listens, which is forbidden; nil: nowhere
}

// Check reports values that make no sense, and a CAFile without certificates.
func (c Config) Check(m *field.Mistakes) {
	for i, port := range c.Ports {
		m.Require(port >= 1 && port <= 65535, fmt.Sprintf("ports[%d]", i), "%d is no port: 1 to 65535", port)
	}
	m.Refuse("proxy", CheckParent(c.Parent))
	if c.CAFile == "" {
		return
	}
	pem, err := field.ReadFile(c.CAFile)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = fmt.Errorf("%s: no certificate in it: a PEM file with -----BEGIN CERTIFICATE----- is needed", c.CAFile)
	}
	m.Refuse("ca_file", err)
}

// CheckParent says why u can't be a parent proxy; nil stands for none. It does not repeat u, which may hold a password.
func CheckParent(u *url.URL) error {
	if u == nil || defaultPorts[u.Scheme] != "" && u.Hostname() != "" && u.Port() != "0" && strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment == "" {
		return nil
	}
	return errors.New("expected the URL of a proxy, http://, https:// or socks5://, with special characters in a password percent-encoded and nothing behind the port, such as http://proxy.lan:3128")
}

// Defaults of a Config.
const (
	DialTimeout           = 10 * time.Second
	ResponseHeaderTimeout = time.Minute
	IdleTimeout           = 90 * time.Second
)

// A Transport sends requests to origins and opens tunnels to them.
type Transport struct {
	Dialer net.Dialer // of all connections; it is guarded, unless there is a parent

	guard      *guard
	netHTTP    *netHTTP
	parent     *url.URL
	tls        *tls.Config
	verdicts   recent[verdict]  // on names that a parent will resolve
	challenged recent[struct{}] // hosts that have asked for NTLM or Negotiate
	conns      *Conns
}

// New returns a Transport that notes its connections in conns; nil: in a list of its own. It takes no proxy from the
// environment.
func New(c Config, conns *Conns) (*Transport, error) {
	if err := CheckParent(c.Parent); err != nil {
		return nil, err
	}
	c.DialTimeout = cmp.Or(c.DialTimeout, DialTimeout)
	c.ResponseHeaderTimeout = cmp.Or(c.ResponseHeaderTimeout, ResponseHeaderTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, IdleTimeout)
	u := &Transport{
		Dialer: net.Dialer{Timeout: c.DialTimeout, KeepAlive: 30 * time.Second},
		guard:  newGuard(c),
		parent: c.Parent,
		tls:    &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
		conns:  cmp.Or(conns, &Conns{}),
	}
	if c.Parent == nil {
		u.Dialer.ControlContext = u.guard.control // with a parent, only the parent's address is dialled
	}
	u.netHTTP = u.newNetHTTP(c)
	return u, nil
}

// RoundTrip sends a request to its origin. The error is an ErrProhibited if the egress rules forbid the
// destination. 1xx responses are passed to the
// httptrace.ClientTrace there.
func (u *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := u.permits(req.URL.Hostname(), portOf(req.URL)); err != nil {
		return nil, err
	}
	sender, err := u.senderFor(req)
	if err != nil {
		return nil, err
	}
	resp, err := sender.RoundTrip(req)
	switch {
	case err != nil && u.parent != nil:
		err = parentError(explained(err))
	case err != nil:
		err = explained(err)
	case resp.StatusCode == http.StatusUnauthorized && namesLogin(resp.Header["Www-Authenticate"]):
		u.challenged.put(req.URL.Host, struct{}{})
	}
	return resp, caused(err)
}

// Check returns an error if a destination is forbidden, as far as that is known without a lookup of its name: it is
// called before the decision, and the names that clients choose must not leave the gate in a lookup when an override
// denies them.
func (u *Transport) Check(host, port string) error { return u.guard.name(host, port) }

// permits returns an error if a destination is forbidden, as far as that is known before it is dialled. With a parent,
// which dials it, that includes the addresses that the name has here.
func (u *Transport) permits(host, port string) error {
	if err := u.guard.name(host, port); err != nil || u.parent == nil {
		return err
	}
	name, now := net.JoinHostPort(host, port), time.Now()
	if v, ok := u.verdicts.get(name); ok && now.Before(v.until) {
		return v.err
	}
	err := exhausted(u.guard.resolved(host, port))
	if !errors.Is(err, ErrExhausted) { // which says nothing about the name
		u.verdicts.put(name, verdict{err, now.Add(verdictTime)})
	}
	return err
}

// CheckLists returns an error if DenyHosts or Ports forbid a destination.
func (u *Transport) CheckLists(host, port string) error { return u.guard.lists(host, port) }

// CloseIdleConnections closes idle connections.
func (u *Transport) CloseIdleConnections() { u.netHTTP.CloseIdleConnections() }

// Close closes idle connections, and those in use when their response has been read.
func (u *Transport) Close() { u.netHTTP.CloseIdleConnections() }

var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080"}

func portOf(u *url.URL) string { return cmp.Or(u.Port(), defaultPorts[u.Scheme]) }

// Dial opens a tunnel to host and port, if the egress rules permit it.
func (u *Transport) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	if err := u.permits(host, port); err != nil {
		return nil, err
	}
	conn, err := u.dialOrigin(ctx, net.JoinHostPort(host, port))
	return conn, caused(err)
}

// dialOrigin opens a connection to an origin, through the parent if there is one.
func (u *Transport) dialOrigin(ctx context.Context, address string) (net.Conn, error) {
	switch {
	case u.parent == nil:
		return u.dial(ctx, "tcp", address)
	case u.parent.Scheme == "socks5":
		return u.dialSocks(ctx, address)
	default:
		return u.dialConnect(ctx, address)
	}
}

// dial opens a connection to an origin, or to the parent if there is one. When descriptors have run out it closes idle
// connections and tries once more.
func (u *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := u.Dialer.DialContext(ctx, network, address)
	if isShortage(err) {
		u.CloseIdleConnections()
		conn, err = u.Dialer.DialContext(ctx, network, address)
	}
	if err == nil {
		return u.conns.add(conn), nil
	}
	if err = exhausted(err); u.parent != nil && ctx.Err() == nil && !errors.Is(err, ErrExhausted) {
		return nil, parentFailed(err)
	}
	return nil, err
}
