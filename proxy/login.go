package proxy

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"robotsgate/policy"
)

// A login is what a client sends in Proxy-Authorization. It is never printed.
type login struct {
	user, password string
	unreadable     bool // something was sent that is no login
}

// maxPassword is what bcrypt reads of a password, in bytes. A longer one is refused,
// since anything might follow there.
const maxPassword = 72

// loginOf returns the login that a request comes with, nil if it has none. In a
// tunnel it is that of CONNECT: what the requests in it say is not for the gate.
func loginOf(r *http.Request) *login {
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok {
		return t.login
	}
	switch lines := r.Header["Proxy-Authorization"]; len(lines) {
	case 0:
		return nil
	case 1:
		return parseLogin(lines[0])
	}
	return &login{unreadable: true} // which of them would it be?
}

// parseLogin reads credentials by the Basic scheme (RFC 7617, 2).
func parseLogin(value string) *login {
	scheme, rest, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return &login{unreadable: true}
	}
	// RFC 9110, 11.2 has padding, which not every client sends.
	text, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(strings.TrimSpace(rest), "="))
	user, password, ok := strings.Cut(string(text), ":")
	if err != nil || !ok || len(password) > maxPassword || strings.ContainsFunc(string(text), isControl) {
		return &login{unreadable: true}
	}
	return &login{user: user, password: password}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// An identity is the search for the crawler that a request comes from.
type identity struct {
	p      *Proxy
	ctx    context.Context
	conn   *clientConn // nil without a login
	client policy.Client
	login  *login
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
		p.wrong.report(client, i.user(), refused, p.Log)
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
	if i.err != nil || i.login.unreadable || i.login.user != l.User {
		return false
	}
	i.named = true
	a := attempt{client: i.client.Addr, hash: l.Hash, user: l.User, password: i.login.password}
	a.proof = i.p.verifier.proof(a.hash, a.user, a.password)
	if i.conn != nil {
		a.failures = int(i.conn.failures.Load())
	}
	var holds bool
	holds, i.err = i.p.verifier.verify(i.ctx, a)
	return holds
}

// user is the name that was sent, for the log, if a crawler has it: what else stands
// there may be a password.
func (i *identity) user() string {
	if i.named {
		return i.login.user
	}
	return "(none that a crawler has)"
}

func (i *identity) busy() *problem {
	detail := "The login could not be verified: too many others are being verified. Try again."
	if !errors.Is(i.err, errBusy) {
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
func (p *Proxy) LoginComparisons() (right, wrong int64) { return p.verifier.compared() }

// wrongLogins says now and then that a client's login is none.
type wrongLogins struct {
	mu    sync.Mutex
	said  time.Time
	since int // that were not told of
}

func (w *wrongLogins) report(client netip.Addr, user string, refused bool, log *slog.Logger) {
	others, say := w.count()
	if !say {
		return
	}
	text := "a client's login is wrong, and counts as none"
	if refused {
		text = "a client's login is wrong, and it is refused"
	}
	log.Warn(text, "client", client, "user", user, "others_since_last", others) // which may be slow
}

// count returns how many have not been told of, and whether it is time to do so.
func (w *wrongLogins) count() (others int, say bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.said) < time.Minute {
		w.since++
		return 0, false
	}
	others, w.said, w.since = w.since, time.Now(), 0
	return others, true
}
