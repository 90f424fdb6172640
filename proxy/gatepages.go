package proxy

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"robotsgate/internal/logtext"
	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/header"
)

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
	StatusPage          string // "": the client is on another machine, or there is none
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
	if client.AddrOf(connOf(r).client).IsLoopback() {
		facts.StatusPage = p.StatusPage
	}
	facts.Proxy = "http://" + facts.Address
	if facts.NeedLogin {
		facts.Proxy = "http://" + loginPlaceholder + "@" + facts.Address
	}
	var page bytes.Buffer
	contentType := "text/plain; charset=utf-8"
	switch cmp.Or(r.URL.Path, "/") {
	case "/":
		h.Set("Vary", "Accept")
		_ = textPages.ExecuteTemplate(&page, "gate.txt", facts) // TestOwnPages executes these
		if header.Negotiate(r.Header["Accept"]) == "text/html" {
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
		p.introduce(&page, r)
	case "/env": // a shell executes it: Address has the characters of ownAddress only
		_ = textPages.ExecuteTemplate(&page, "env.txt", facts)
	case "/proxy.pac":
		contentType = "application/x-ns-proxy-autoconfig"
		facts.Route = route(r, facts.Address)
		_ = textPages.ExecuteTemplate(&page, "proxy.pac", facts)
	default:
		http.Error(w, "robotsgate: this is a proxy; send it absolute URLs, or set http_proxy=http://"+facts.Address, http.StatusNotFound)
		return
	}
	if page.Len() == 0 { // see Options.CA and Options.Bundle
		http.Error(w, "robotsgate: this gate does not offer this file", http.StatusNotFound)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(page.Len())) // for HEAD as well
	w.Write(page.Bytes())
}

// introduce writes which crawler the gate takes a client for, or why it refuses the client.
func (p *Proxy) introduce(page *bytes.Buffer, r *http.Request) {
	in := newInbound(p.settings.Load(), r)
	k, refused := p.clients.identify(r.Context(), in.settings.Engine.Crawlers(), senderOf(&in))
	if refused != nil {
		fmt.Fprintf(page, "refused: %s\n", logtext.Printable(refused.detail))
	} else {
		fmt.Fprintf(page, "crawler: %s\n", logtext.Printable(k.Name))
	}
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
