package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
)

// loginOf returns the login of a request, nil if it has none. In a tunnel the login of
// CONNECT counts: Proxy-Authorization inside the tunnel is not meant for the gate.
func loginOf(r *http.Request) *auth.Login {
	if t := connOf(r).tunnel; t != nil {
		return t.login
	}
	return auth.Parse(r.Header["Proxy-Authorization"])
}

// An identification is the search for the crawler that sends a request.
type identification struct {
	verifier *auth.Verifier
	ctx      context.Context
	client   policy.Client
	login    *auth.Login
	tried    bool   // a crawler's login was compared with the request's
	user     string // for the log. Text that is no crawler's user name may be a password in the wrong place
	err      error  // of the verification
}

// identify returns the crawler that sends a request, or the answer if the gate does not serve
// the client. opening is set for a CONNECT whose tunnel carries requests that are decided later:
// their User-Agents are not known yet, so every pattern for User-Agents matches.
func (p *Proxy) identify(s *Settings, r *http.Request, client netip.Addr, opening bool) (*policy.Crawler, *problem) {
	crawlers := s.Engine.Crawlers()
	i := p.newIdentification(r, client, opening)
	k := crawlers.Identify(i.client)
	if i.err != nil {
		return nil, &problem{
			status: http.StatusServiceUnavailable, title: "Logins take too long", kind: "login-busy", retry: time.Second, fault: "http_request_denied", refused: ByLimit,
			detail: "The login could not be verified: too many others are being verified, or the request was given up. Try again.",
		}
	}
	refused := k == crawlers.Default && crawlers.RefuseUnknown
	invited := refused && crawlers.Invites(i.client)
	switch {
	case i.login.Empty() && refused:
		p.wrong.Report(p.Log, "a client with an empty login is refused", client, "hint", wget2Login)
	case i.tried && !k.Login.Required() && refused:
		p.wrong.Report(p.Log, "a client with a wrong login is refused", client, "user", i.user)
	case i.tried && !k.Login.Required():
		p.wrong.Report(p.Log, "a client's login is wrong, and is ignored", client, "user", i.user)
	case i.login == nil && invited:
		p.missing.Report(p.Log, "a client needs a login, and sent none", client)
	}
	if !refused {
		return k, nil
	}
	return nil, i.unknown(invited, connOf(r))
}

func (p *Proxy) newIdentification(r *http.Request, client netip.Addr, opening bool) *identification {
	i := &identification{verifier: p.verifier, ctx: r.Context(), login: loginOf(r), user: "(none that a crawler has)"}
	i.client = policy.Client{Addr: client, UserAgent: r.Header.Get("User-Agent"), AnyAgent: opening}
	if i.login != nil {
		i.client.Proves = i.proves
	}
	return i
}

// proves reports whether the request's login is this crawler's. Logins of other user names
// are not compared, so they cost nothing.
func (i *identification) proves(l *policy.Login) bool {
	i.tried = true
	if i.err != nil || i.login.Invalid || i.login.User != l.User {
		return false
	}
	i.user = l.User
	var holds bool
	holds, i.err = i.verifier.Verify(i.ctx, client.LimitKey(i.client.Addr), []byte(l.Hash), i.login)
	return holds
}

// loginChallenge is the Proxy-Authenticate of a 407 (RFC 7617, section 2.1).
const loginChallenge = `Basic realm="robotsgate", charset="UTF-8"`

// wget2Login says what to do about an empty login. Some clients send one when they have none.
const wget2Login = "wget2 1.99.1 sends an empty login in place of the one in the proxy's URL: give it --http-proxy-user and --http-proxy-password, or set http_proxy_user and http_proxy_password in ~/.wget2rc."

// unknown returns the answer to a client that is none of the crawlers. It asks for a login
// only if a crawler could match with one: some clients fail on a 407 that they cannot answer,
// and no client understands one inside its tunnel.
func (i *identification) unknown(invited bool, c *connection) *problem {
	p := &problem{
		status: http.StatusForbidden, kind: "unknown-client", title: "Unknown client", fault: "http_request_denied", cause: "unknown client", refused: ByLogin,
		detail: "This gate serves known crawlers only, and none of them matches a client at " + i.client.Addr.String(),
	}
	if !i.client.AnyAgent {
		p.detail += " with this User-Agent"
	}
	p.detail += "."
	if !invited {
		p.detail += " The gate's operator can add a crawler that does."
		return p
	}
	if c.redirected {
		p.detail += " Its connection was redirected to the gate, so no login can come with it. Give the client the gate's address as its proxy, with a login; or let the operator identify it by its address."
		return p
	}
	cause, detail := "wrong login", " The login that came with %s does not belong to a crawler that matches."
	switch {
	case i.login.Empty():
		detail = " The login that came with %s is empty. " + wget2Login
	case i.login == nil:
		cause, detail = "login required", " A login has to come with %s: put it into the proxy's URL, as http://USER:PASSWORD@HOST:PORT."
	}
	if c.tunnel != nil {
		p.detail += fmt.Sprintf(detail, "CONNECT")
		return p
	}
	p.status, p.title, p.cause = http.StatusProxyAuthRequired, "Login required", cause
	p.detail += fmt.Sprintf(detail, "the request")
	return p
}

// LoginComparisons returns how many passwords have been compared with a hash. Each
// password is compared once.
func (p *Proxy) LoginComparisons() (right, wrong int64) { return p.verifier.Comparisons() }
