package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
)

// SocksConnections counts the connections on which clients have spoken SOCKS to the gate.
func (p *Proxy) SocksConnections() ConnCounts { return p.socks.Counts() }

// takeSocks serves a connection that begins like SOCKS, and does not wait for its end. What was read of the connection
// is in first.
func (p *Proxy) takeSocks(c *client.Conn, first []byte) {
	if !client.IsSocks5(first[0]) {
		p.socks.Refuse(c, client.SocksVersion, p.Log)
		return
	}
	p.silent.Add(c)
	go func() {
		defer p.silent.Remove(c)
		defer p.recoverConn(c)
		p.serveSocks(c, first)
	}()
}

// A socksRefusal ends a SOCKS connection.
type socksRefusal struct {
	answer []byte // what the client is sent
	reason client.ConnRefusal
}

// serveSocks reads the greeting, the login and the request (RFC 1928, RFC 1929), and answers them. What comes then is
// served as a redirected connection is.
func (p *Proxy) serveSocks(c *client.Conn, first []byte) {
	_ = c.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout)) // for all of it together
	conn := client.NewPrefixed(c, first)
	rd := bufio.NewReaderSize(conn, client.MaxFirstLine)
	b := &beginning{connection: &connection{client: c, socks: true}, conn: conn, counter: p.socks}
	s := p.settings.Load()
	no := p.agreeOnMethod(b, s, rd)
	if no == nil {
		no = p.readDestination(b, s, rd)
	}
	if no != nil {
		_, _ = c.Write(no.answer) // the client may have gone
		c.Linger()                // or may have sent more, and must be able to read the answer
		p.socks.Refuse(c, no.reason, p.Log)
		return
	}
	_ = c.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
	p.serveBeginning(b, rd)
}

// agreeOnMethod answers the greeting, and the login if there is one.
func (p *Proxy) agreeOnMethod(b *beginning, s *Settings, rd *bufio.Reader) *socksRefusal {
	methods, err := client.ReadSocksGreeting(rd)
	if err != nil {
		return unreadSocks(err, nil)
	}
	none, login := slices.Contains(methods, client.NoLogin), slices.Contains(methods, client.LoginMethod)
	needed := slices.ContainsFunc(s.Engine.Crawlers().Known, func(k *policy.Crawler) bool { return k.Login.Required() })
	switch {
	case login && (needed || !none):
		return p.readLogin(b, s, rd)
	case !none:
		return &socksRefusal{client.SocksChoice(client.NoneAcceptable), client.SocksMethod}
	case !p.mayServe(b, s):
		return &socksRefusal{client.SocksChoice(client.NoneAcceptable), client.SocksLogin}
	}
	return writeSocks(b, client.SocksChoice(client.NoLogin))
}

// readLogin reads a login and answers it. A wrong login is refused only if clients that match no crawler are.
func (p *Proxy) readLogin(b *beginning, s *Settings, rd *bufio.Reader) *socksRefusal {
	if no := writeSocks(b, client.SocksChoice(client.LoginMethod)); no != nil {
		return no
	}
	user, password, err := client.ReadSocksLogin(rd)
	if err != nil {
		return unreadSocks(err, client.SocksLoginReply(false))
	}
	if b.login = auth.New(user, password); !p.mayServe(b, s) {
		return &socksRefusal{client.SocksLoginReply(false), client.SocksLogin}
	}
	return writeSocks(b, client.SocksLoginReply(true))
}

// mayServe reports whether a crawler may match the client. The User-Agents of its requests are not known yet, so every
// pattern for User-Agents matches.
func (p *Proxy) mayServe(b *beginning, s *Settings) bool {
	crawlers := s.Engine.Crawlers()
	if !crawlers.RefuseUnknown {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.Limits.HeaderTimeout)
	defer cancel()
	in := newTunnelInbound(s, b.connection, b.login)
	from := senderOf(&in)
	from.AnyAgent = true
	_, no := p.clients.identify(ctx, crawlers, from)
	return no == nil || no.refused == record.ByLimit // passwords can't be compared now: each request says so
}

// readDestination reads the request and answers it.
func (p *Proxy) readDestination(b *beginning, s *Settings, rd *bufio.Reader) *socksRefusal {
	req, reply, reason, err := client.ReadSocksRequest(rd)
	switch {
	case err != nil:
		return unreadSocks(err, nil)
	case reason != "":
		return &socksRefusal{client.SocksReply(reply), reason}
	}
	b.port = strconv.Itoa(int(req.Port))
	target, err := canonical.ParseTarget("https", bracketed(req.Host)+":"+b.port, "/")
	if err != nil {
		return &socksRefusal{client.SocksReply(client.SocksNoHost), client.SocksUnreachable}
	}
	_, err = netip.ParseAddr(target.Hostname())
	o := &opening{inbound: newTunnelInbound(s, b.connection, b.login), target: target}
	b.asked, b.byName = newTunnel(o), err != nil
	if !isOwn(target) && p.deniesSocks(b, s, &b.asked.opened) {
		return &socksRefusal{client.SocksReply(client.SocksNotAllowed), client.SocksDenied}
	}
	return writeSocks(b, client.SocksReply(client.SocksSucceeded))
}

// deniesSocks records a request of which all that could follow would be refused, and reports whether it is one. No name
// is resolved.
func (p *Proxy) deniesSocks(b *beginning, s *Settings, in *inbound) bool {
	p.open.Add(b.client) // Shutdown waits for the record
	defer p.open.Remove(b.client)
	ctx, cancel := context.WithTimeout(context.Background(), p.Limits.HeaderTimeout)
	defer cancel()
	crawlers := s.Engine.Crawlers()
	i := p.clients.begin(ctx, senderOf(in))
	candidates := crawlers.Candidates(i.Client)
	if i.err != nil || len(candidates) == 0 {
		return false // the requests are refused
	}
	x := &exchange{p: p, inbound: *in}
	x.crawler = candidates[0]
	if d, ok := s.Engine.DeniesHost(in.target, candidates[0]); ok && !slices.ContainsFunc(candidates[1:], func(k *policy.Crawler) bool {
		_, denied := s.Engine.DeniesHost(in.target, k)
		return !denied
	}) {
		x.Decision = d
		p.handle(x, nil, nil, refusal(in, &x.Signals))
		return true
	}
	check := s.Upstream.Check // of an address
	if b.byName {
		check = s.Upstream.CheckLists
	}
	host, port, _ := net.SplitHostPort(in.target.Address())
	if err := check(host, port); err != nil {
		p.handle(x, nil, nil, failure(err, in, nil))
		return true
	}
	return false
}

// unreadSocks returns the refusal of a client that has sent something else than SOCKS5, or not all of it. The answer is
// for the former.
func unreadSocks(err error, answer []byte) *socksRefusal {
	if errors.Is(err, client.ErrSocks) {
		return &socksRefusal{answer, client.SocksMalformed}
	}
	return &socksRefusal{nil, client.Incomplete}
}

// writeSocks sends an answer after which the connection goes on, unless the client has gone.
func writeSocks(b *beginning, answer []byte) *socksRefusal {
	if _, err := b.client.Write(answer); err != nil {
		return &socksRefusal{nil, client.Incomplete}
	}
	return nil
}
