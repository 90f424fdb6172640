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

// guarded serves requests with the Host of the listener, with headers that keep pages of other
// sites from using or framing the response, and the browser from caching it.
func (a *admin) guarded(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		if !a.isOwnHost(r) {
			why := "this page is not served under the name " + r.Host + "; add it to admin.hosts if it is yours"
			if r.URL.IsAbs() {
				why = "this is the gate's status page; its proxy is " + a.Proxy
			}
			fail(w, http.StatusForbidden, why)
			return
		}
		h(w, r)
	}
}

// noProxy answers clients that take the listener for the proxy, if mux has nothing for their requests.
func (a *admin) noProxy(mux *http.ServeMux, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" && r.URL.IsAbs() && !a.isOwnHost(r) {
			a.guarded(nil)(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// sameOrigin serves guarded requests, but for those of another site's page: even a GET can
// cause a fetch.
func (a *admin) sameOrigin(h http.HandlerFunc) http.HandlerFunc {
	return a.guarded(func(w http.ResponseWriter, r *http.Request) {
		if isCrossSite(r) {
			fail(w, http.StatusForbidden, "another site's page has sent this request")
			return
		}
		h(w, r)
	})
}

// maxWait is how long a response may take that waits for an origin.
const maxWait = 5 * time.Minute

// waiting extends the server's timeouts for a handler that waits for an origin. While the
// handler waits net/http reads from the connection, and takes the end of ReadTimeout for a
// disconnect of the client.
func waiting(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		control, until := http.NewResponseController(w), time.Now().Add(maxWait)
		_ = control.SetWriteDeadline(until) // fails for the recorder of a test
		if r.ContentLength == 0 {           // otherwise a client could send a body for as long
			_ = control.SetReadDeadline(until)
		}
		h(w, r)
	}
}

// isCrossSite reports whether, according to the browser, another site's page has sent a
// request. Browsers send Sec-Fetch-Site over https and to loopback addresses only.
func isCrossSite(r *http.Request) bool {
	as := &http.Request{Method: http.MethodPost, Host: r.Host, Header: r.Header} // net/http does not check a GET
	return http.NewCrossOriginProtection().Check(as) != nil
}

// isOwnHost reports whether the Host of a request is the listener's.
func (a *admin) isOwnHost(r *http.Request) bool {
	if r.URL.IsAbs() && r.URL.Scheme != "http" {
		return false // sent as to a proxy: r.Host is the host of that URL
	}
	host := strings.ToLower(strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), "."))
	if host == "localhost" || slices.ContainsFunc(a.Config.Hosts, func(k string) bool { return strings.EqualFold(k, host) }) {
		return true
	}
	// The address of this end of the connection. If a hostile name resolves to it, Host has
	// that name.
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	asked, askedErr := netip.ParseAddr(host)
	return err == nil && askedErr == nil && own.Addr().Unmap() == asked.Unmap()
}
