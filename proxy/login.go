package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/auth"
)

// loginOf returns the login that a request comes with, nil if it has none. In a
// tunnel it is that of CONNECT: what the requests in it say is not for the gate.
func loginOf(r *http.Request) *auth.Login {
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok {
		return t.login
	}
	switch lines := r.Header["Proxy-Authorization"]; len(lines) {
	case 0:
		return nil
	case 1:
		return auth.Parse(lines[0])
	}
	return &auth.Login{Unreadable: true} // which of them would it be?
}

// An identity is the search for the crawler that a request comes from.
type identity struct {
	p      *Proxy
	ctx    context.Context
	conn   *clientConn // nil without a login
	client policy.Client
	login  *auth.Login
	asked  bool  // some crawler's login has been looked at
	named  bool  // one of those has the user name that was sent
	err    error // why that could not be done
}

// identify returns the crawler that a request comes from, or what to answer. At
// CONNECT the requests that will come through the tunnel are not known yet.
func (p *Proxy) identify(s *Settings, r *http.Request, client netip.Addr, opening bool) (*policy.Crawler, *problem) {
	crawlers := s.Engine.Crawlers()
	i := &identity{p: p, ctx: r.Context(), login: loginOf(r)}
	i.client = policy.Client{Addr: client, UserAgent: r.Header.Get("User-Agent"), AnyAgent: opening}
	if i.login != nil {
		i.conn, i.client.Proves = clientOf(r), i.proves
	}
	k := crawlers.Identify(i.client)
	if i.err != nil {
		return nil, i.busy()
	}
	refused := k == crawlers.Default && crawlers.RefuseUnknown
	if i.asked && k.Login == nil {
		if i.conn != nil {
			i.conn.failures.Add(1)
		}
		p.wrong.Report(client, i.user(), refused, p.Log)
	}
	if !refused {
		return k, nil
	}
	_, inside := r.Context().Value(tunnelKey{}).(*tunnel)
	return nil, i.unknown(crawlers.Invites(i.client), inside)
}

// proves reports whether the login that was sent is the one asked for. Logins of
// other names cost nothing.
func (i *identity) proves(l *policy.Login) bool {
	i.asked = true
	if i.err != nil || i.login.Unreadable || i.login.User != l.User {
		return false
	}
	i.named = true
	a := auth.Attempt{Client: household(i.client.Addr), Hash: l.Hash, User: l.User, Password: i.login.Password}
	a.Proof = i.p.verifier.Proof(a.Hash, a.User, a.Password)
	if i.conn != nil {
		a.Failures = int(i.conn.failures.Load())
	}
	var holds bool
	holds, i.err = i.p.verifier.Verify(i.ctx, a)
	return holds
}

// user is the name that was sent, for the log, if a crawler has it: what else stands
// there may be a password.
func (i *identity) user() string {
	if i.named {
		return i.login.User
	}
	return "(none that a crawler has)"
}

func (i *identity) busy() *problem {
	detail := "The login could not be verified: too many others are being verified. Try again."
	if !errors.Is(i.err, auth.ErrBusy) {
		detail = "The request was given up before its login was verified."
	}
	return &problem{status: http.StatusServiceUnavailable, title: "Logins take too long", kind: "login-busy", retry: time.Second, fault: "http_request_denied", detail: detail}
}

// unknown answers a client that is none of the crawlers. It is asked for a login
// only where that could help: some clients fail on a 407 that they have no answer
// to, and none can read one inside its tunnel.
func (i *identity) unknown(invited, inside bool) *problem {
	p := &problem{
		status: http.StatusForbidden, kind: "unknown-client", title: "Unknown client", fault: "http_request_denied", cause: "unknown client",
		detail: "This gate serves known crawlers only, and none of them matches a client at " + i.client.Addr.String(),
	}
	if !i.client.AnyAgent {
		p.detail += " with this User-Agent"
	}
	p.detail += "."
	switch {
	case !invited:
	case inside && i.login == nil:
		p.detail += " A login has to come with CONNECT: put it into the proxy's URL, as http://USER:PASSWORD@HOST:PORT."
	case inside:
		p.detail += " The login that came with CONNECT is not theirs."
	case i.login == nil:
		p.status, p.title, p.cause = http.StatusProxyAuthRequired, "Login required", "login required"
		p.detail += " Put a login into the proxy's URL, as http://USER:PASSWORD@HOST:PORT."
	default:
		p.status, p.title, p.cause = http.StatusProxyAuthRequired, "Login required", "wrong login"
		p.detail += " The login that came with the request is not theirs."
	}
	return p
}

// LoginComparisons returns how many passwords have been compared with a hash, which
// is done once for each.
func (p *Proxy) LoginComparisons() (right, wrong int64) { return p.verifier.Compared() }
