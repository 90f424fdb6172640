package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
)

// A sender is what the gate knows of the client that sends a request, before it knows the crawler.
type sender struct {
	policy.Client
	login *auth.Login // nil: none
	conn  *connection
}

func senderOf(in *inbound) sender {
	return sender{policy.Client{Addr: in.client, UserAgent: in.header.Get("User-Agent")}, in.login, in.conn}
}

// clients finds out which crawlers clients are.
type clients struct {
	log      *slog.Logger
	verifier *auth.Verifier
	wrong    client.Rejections
	missing  client.Rejections
	unknown  client.Rejections // clients that match no crawler
}

// An identification is the search for the crawler that sends a request.
type identification struct {
	sender
	verifier *auth.Verifier
	ctx      context.Context
	tried    bool   // a crawler's login was compared with the request's
	user     string // for the log. Text that is no crawler's user name may be a password in the wrong place
	err      error  // of the verification
}

// identify returns the crawler that sends a request, or the answer if the gate does not serve the client.
func (c *clients) identify(ctx context.Context, crawlers policy.Crawlers, s sender) (*policy.Crawler, *answer) {
	i := c.begin(ctx, s)
	k := crawlers.Identify(i.Client)
	if i.err != nil {
		return nil, &answer{
			status: http.StatusServiceUnavailable, title: "Logins take too long", kind: "login-busy", retry: time.Second, fault: "http_request_denied", refused: record.ByLimit,
			detail: "The login could not be verified: too many others are being verified, or the request was given up.",
		}
	}
	refused := k == crawlers.Default && crawlers.RefuseUnknown
	invited := refused && crawlers.Invites(i.Client)
	switch {
	case i.login.Empty() && refused:
		c.wrong.Add(c.log, "a client with an empty login is refused", i.Addr.String(), "hint", wget2Login)
	case i.tried && !k.Login.Required() && refused:
		c.wrong.Add(c.log, "a client with a wrong login is refused", i.Addr.String(), "user", i.user)
	case i.tried && !k.Login.Required():
		c.wrong.Add(c.log, "a client's login is wrong, and is ignored", i.Addr.String(), "user", i.user)
	case i.login == nil && invited:
		c.missing.Add(c.log, "a client needs a login, and sent none", i.Addr.String())
	case refused:
		c.unknown.Add(c.log, "a client that matches no crawler is refused; add its address or User-Agent to a crawler, or give it a login", i.Addr.String())
	}
	if !refused {
		return k, nil
	}
	return nil, i.unknown(invited)
}

// likely returns the crawler for the record of a tunnel without a request, as far as its CONNECT or SOCKS request shows
// it; nil if the gate does not serve the client.
func (c *clients) likely(ctx context.Context, crawlers policy.Crawlers, s sender) *policy.Crawler {
	k := crawlers.Identify(c.begin(ctx, s).Client)
	if k == crawlers.Default && crawlers.RefuseUnknown {
		return nil
	}
	return k
}

func (c *clients) begin(ctx context.Context, s sender) *identification {
	i := &identification{sender: s, verifier: c.verifier, ctx: ctx, user: "(none that a crawler has)"}
	if i.login != nil {
		i.Proves = i.proves
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
	holds, i.err = i.verifier.Verify(i.ctx, []byte(l.Hash), i.login)
	return holds
}

// wget2Login says what to do about an empty login. Some clients send one when they have none.
const wget2Login = "wget2 1.99.1 sends an empty login in place of the one in the proxy's URL: give it --http-proxy-user and --http-proxy-password, or set http_proxy_user and http_proxy_password in ~/.wget2rc."

// unknown returns the answer to a client that is none of the crawlers. It asks for a login
// only if a crawler could match with one: some clients fail on a 407 that they cannot answer,
// and no client understands one inside its tunnel.
func (i *identification) unknown(invited bool) *answer {
	p := &answer{
		status: http.StatusForbidden, kind: "unknown-client", title: "Unknown client", fault: "http_request_denied", cause: "unknown client", refused: record.ByLogin,
		detail: "This gate serves known crawlers only, and none of them matches a client at " + i.Addr.String(),
	}
	if !i.AnyAgent {
		p.detail += " with this User-Agent"
	}
	p.detail += "."
	if !invited {
		p.detail += " The gate's operator can add a crawler that does."
		return p
	}
	if i.conn.redirected {
		p.detail += " Its connection was redirected to the gate, so no login can come with it. Give the client the gate's address as its proxy, with a login; or let the operator identify it by its address."
		return p
	}
	if i.conn.socks {
		if i.login == nil {
			p.detail += " A login has to come with the SOCKS request: put it into the proxy's URL, as socks5h://USER:PASSWORD@HOST:PORT."
		} else {
			p.detail += " The login that came with the SOCKS request does not belong to a crawler that matches."
		}
		return p
	}
	cause, detail := "wrong login", " The login that came with %s does not belong to a crawler that matches."
	switch {
	case i.login.Empty():
		detail = " The login that came with %s is empty. " + wget2Login
	case i.login == nil:
		cause, detail = "login required", " A login has to come with %s: put it into the proxy's URL, as http://USER:PASSWORD@HOST:PORT."
	}
	if i.conn.tunnel != nil {
		p.detail += fmt.Sprintf(detail, "CONNECT")
		return p
	}
	p.status, p.title, p.cause = http.StatusProxyAuthRequired, "Login required", cause
	p.detail += fmt.Sprintf(detail, "the request")
	return p
}
