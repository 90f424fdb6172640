package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// guarded admits requests that name the listener as it is known. Whoever may look
// at the answer, it is not for other sites' pages to use, to frame or to keep.
func (a *admin) guarded(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		if !a.ours(r) {
			fail(w, http.StatusForbidden, "this page is not served under the name "+r.Host+"; add it to admin.hosts if it is yours")
			return
		}
		h(w, r)
	}
}

// own admits guarded requests that no other site's page has sent. Even a question
// may make a fetch, so it is not for others to ask.
func (a *admin) own(h http.HandlerFunc) http.HandlerFunc {
	return a.guarded(func(w http.ResponseWriter, r *http.Request) {
		if foreign(r) {
			fail(w, http.StatusForbidden, "another site's page has sent this request")
			return
		}
		h(w, r)
	})
}

// atMost is how long an answer may take that waits for an origin.
const atMost = 5 * time.Minute

// waits gives a handler its time. While it waits net/http reads on, and would take the
// end of the server's ReadTimeout for the client's leaving.
func waits(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		control, until := http.NewResponseController(w), time.Now().Add(atMost)
		_ = control.SetWriteDeadline(until) // a recorder in a test has none
		if r.ContentLength == 0 {           // else somebody could send a body for as long as that
			_ = control.SetReadDeadline(until)
		}
		h(w, r)
	}
}

// foreign reports whether a browser says that another site's page has sent a
// request. It says so where it trusts the connection (https, or a loopback address).
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: typed in, or a bookmark
		return false
	case "":
		origin := r.Header.Get("Origin")
		if origin == "" {
			return false
		}
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	}
	return true
}

// ours reports whether a request names the listener.
func (a *admin) ours(r *http.Request) bool {
	if r.URL.IsAbs() && r.URL.Scheme != "http" {
		return false // it was meant for a proxy; net/http takes its host for r.Host
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	if host == "localhost" || slices.ContainsFunc(a.Hosts, func(k string) bool { return strings.EqualFold(k, host) }) {
		return true
	}
	// The address that the connection came in at: a name can be made to resolve
	// to it, but then Host carries the name.
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	asked, askedErr := netip.ParseAddr(host)
	return err == nil && askedErr == nil && own.Addr().Unmap() == asked.Unmap()
}
