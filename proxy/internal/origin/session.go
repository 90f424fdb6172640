package origin

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// maxLogins bounds the origins at which a Session is logged in. One more logs out at all of them.
const maxLogins = 64

// A Session keeps the connections to origins on which one connection of a client has logged in. NTLM and Negotiate log
// in the connection rather than the request (RFC 4559, 6), so such a connection serves no other client connection, and
// ends with it. The zero value is ready.
type Session struct {
	mu     sync.Mutex
	logins map[login]*netHTTP
	ended  bool
}

// A login is at an origin, with the Transport that was in force.
type login struct {
	at     *Transport
	secure bool
	host   string // with the port, as in the URL
}

type sessionKey struct{}

// Bind returns a request of the client connection as one that may need connections of the session.
func (s *Session) Bind(r *http.Request) *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.logins) == 0 && !namesLogin(r.Header["Authorization"]) {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, s))
}

// End closes the session's connections. Those in use are closed when their requests end.
func (s *Session) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.logOut()
}

func (s *Session) logOut() {
	for _, n := range s.logins {
		n.CloseIdleConnections()
	}
	clear(s.logins)
}

// senderFor returns what sends a request of a session: u's own until the client has logged in at the origin.
func (u *Transport) senderFor(req *http.Request) (*netHTTP, error) {
	s, _ := req.Context().Value(sessionKey{}).(*Session)
	if s == nil {
		return u.netHTTP, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	to := login{u, req.URL.Scheme == "https", req.URL.Host}
	n := s.logins[to]
	switch {
	case n != nil:
		return n, nil
	case !namesLogin(req.Header["Authorization"]):
		return u.netHTTP, nil
	case s.ended:
		return nil, context.Canceled
	case s.logins == nil:
		s.logins = map[login]*netHTTP{}
	case len(s.logins) >= maxLogins:
		s.logOut()
	}
	c := u.guard.Config
	c.MaxConnsPerHost = 1 // the messages of a handshake must not be divided between connections
	n = u.newNetHTTP(c)
	n.http2, n.challenged = n.http1, &u.challenged
	s.logins[to] = n
	return n, nil
}

// namesLogin reports whether a value of Authorization or WWW-Authenticate names NTLM or Negotiate.
func namesLogin(values []string) bool {
	for _, v := range values {
		if scheme := strings.Fields(v); len(scheme) > 0 && (strings.EqualFold(scheme[0], "NTLM") || strings.EqualFold(scheme[0], "Negotiate")) {
			return true
		}
	}
	return false
}
