package proxy

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"robotsgate/internal/escape"
	"robotsgate/policy/canonical"
)

// ownName is the gate's host name for its clients: no other host can have a name under .invalid
// (RFC 6761, 6.4). A client that receives a page from it uses a gate and, over https, trusts its
// CA.
const ownName = "robotsgate.invalid"

// loginPlaceholder stands for a login in lines to copy. The gate knows no password, and its pages
// name no user.
const loginPlaceholder = "USER:PASSWORD"

// gateFacts are what the pages about the gate say.
type gateFacts struct {
	Address, Host, Port string
	Proxy               string // its URL for clients, with a placeholder if each needs a login
	NeedLogin           bool
	Route               string // to the gate, in the syntax of a configuration script
	Text                string // of the page, for its HTML form
}

// serveOwn answers requests to the gate itself: what it is, the certificate to
// trust, and a configuration script.
func (p *Proxy) serveOwn(w http.ResponseWriter, r *http.Request) {
	control, now := http.NewResponseController(w), time.Now()
	_ = control.SetWriteDeadline(now.Add(2 * p.Limits.HeaderTimeout))
	if r.ContentLength != 0 { // net/http first reads the rest of the body
		_ = control.SetReadDeadline(now.Add(p.Limits.HeaderTimeout))
	}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "robotsgate: the gate's own pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	facts := gateFacts{Address: p.ownAddress(r), NeedLogin: p.settings.Load().Engine.Crawlers().NeedLogin()}
	facts.Host, facts.Port, _ = net.SplitHostPort(facts.Address)
	facts.Proxy = "http://" + facts.Address
	if facts.NeedLogin {
		facts.Proxy = "http://" + loginPlaceholder + "@" + facts.Address
	}
	var page bytes.Buffer
	contentType, status := "text/plain; charset=utf-8", http.StatusOK
	switch cmp.Or(r.URL.Path, "/") {
	case "/":
		h.Set("Vary", "Accept")
		_ = textPages.ExecuteTemplate(&page, "gate.txt", facts) // TestOwnPages executes these
		if negotiate(r.Header["Accept"]) == "text/html" {
			contentType = "text/html; charset=utf-8"
			facts.Text = page.String()
			page.Reset()
			_ = htmlPages.ExecuteTemplate(&page, "gate.html", facts)
		}
	case "/ca.pem":
		contentType = "application/x-pem-file"
		page.Write(p.CA())
	case "/bundle.pem":
		contentType = "application/x-pem-file"
		page.Write(p.Bundle())
	case "/crawler":
		h.Set("Cache-Control", "no-store")
		h.Set("Vary", "Accept")
		refused := p.introduce(&page, r)
		if strings.Contains(r.Header.Get("Accept"), "json") {
			contentType = "application/json"
			page = asPackage(page.String())
		}
		// For wget2, which sends its login only after a 407.
		if refused != nil && refused.status == http.StatusProxyAuthRequired && r.URL.RawQuery == "challenge" && loginOf(r) == nil {
			h.Set("Proxy-Authenticate", loginChallenge)
			status = http.StatusProxyAuthRequired
		}
	case "/proxy.pac":
		contentType = "application/x-ns-proxy-autoconfig"
		facts.Route = route(r, facts.Address)
		_ = textPages.ExecuteTemplate(&page, "proxy.pac", facts)
	default:
		if page := p.settings.Load().Pages[r.URL.Path]; page != nil {
			page.ServeHTTP(w, r)
			return
		}
		http.Error(w, "robotsgate: this is a proxy; send it absolute URLs, or set http_proxy=http://"+facts.Address, http.StatusNotFound)
		return
	}
	if page.Len() == 0 { // see Options.CA and Options.Bundle
		http.Error(w, "robotsgate: this gate does not offer this file", http.StatusNotFound)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(page.Len())) // for HEAD as well
	w.WriteHeader(status)
	w.Write(page.Bytes())
}

// introduce writes which crawler the gate takes a client for, or why it refuses the client,
// and then the certificates, so that robotsgate doctor needs one request only.
func (p *Proxy) introduce(page *bytes.Buffer, r *http.Request) (refused *problem) {
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	k, refused := p.identify(p.settings.Load(), r, client.Addr().Unmap(), false)
	if refused != nil {
		fmt.Fprintf(page, "refused: %s\n", escape.Printable(refused.detail))
	} else {
		fmt.Fprintf(page, "crawler: %s\n", escape.Printable(k.Name))
	}
	page.Write(p.CA())
	return refused
}

// ownAddress returns the address at which the client has reached the gate: its Host field, since
// the socket's address may be one behind a port mapping. It stands in commands for copying, so
// only these characters are allowed. A redirected client has chosen neither.
func (p *Proxy) ownAddress(r *http.Request) string {
	if address, ok := p.address.Load().(string); ok && connOf(r).redirected {
		return address
	}
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]"
	if t, err := canonical.ParseTarget("http", r.Host, "/"); err == nil && t.Hostname() != ownName {
		if _, port := canonical.SplitPort(r.Host); port != "" && strings.Trim(t.Address(), letters) == "" {
			return t.Address()
		}
	}
	return r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
}

// route returns the proxy in the syntax of a configuration script. A client that fetches the
// script over TLS can speak TLS to the proxy too, which hides its requests and its login.
func route(r *http.Request, address string) string {
	if c := connOf(r); c.tunnel == nil && c.client.InTLS() {
		return "HTTPS " + address + "; PROXY " + address
	}
	return "PROXY " + address
}
