package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"robotsgate/internal/escape"
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
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && a.Addr().Unmap().IsLoopback() {
		facts.StatusPage = p.StatusPage
	}
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
		if header.Negotiate(r.Header["Accept"]) == "text/html" {
			contentType = "text/html; charset=utf-8"
			facts.Text = page.String()
			page.Reset()
			_ = htmlPages.ExecuteTemplate(&page, "gate.html", facts)
		}
	case "/ca.pem":
		if r.URL.RawQuery == "trying" { // robotsgate doctor
			p.hints.Try(client.AddrOf(connOf(r).client))
		}
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
		if refused != nil && refused.status == http.StatusProxyAuthRequired && r.URL.RawQuery == "challenge" && newInbound(p.settings.Load(), r).login == nil {
			h.Set("Proxy-Authenticate", loginChallenge)
			status = http.StatusProxyAuthRequired
		}
	case "/env": // a shell executes it: Address has the characters of ownAddress only
		_ = textPages.ExecuteTemplate(&page, "env.txt", facts)
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
func (p *Proxy) introduce(page *bytes.Buffer, r *http.Request) (refused *answer) {
	in := newInbound(p.settings.Load(), r)
	k, refused := p.clients.identify(r.Context(), in.settings.Engine.Crawlers(), senderOf(&in))
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

// A npmPackage is what a registry of npm says about a package.
type npmPackage struct {
	Name        string                       `json:"name"`
	Description string                       `json:"description"`
	Tags        map[string]string            `json:"dist-tags"`
	Versions    map[string]npmPackageVersion `json:"versions"`
}

type npmPackageVersion struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Deprecated  string            `json:"deprecated"`
	Dist        map[string]string `json:"dist"`
}

// asPackage returns the page /crawler as a package of npm with this name. npm, pnpm and yarn can
// show the description of a package, or why it is deprecated, but not a text, and so robotsgate
// doctor can try them. There is no archive: nothing can be installed.
func asPackage(text string) (page bytes.Buffer) {
	const name, version = "crawler", "1.0.0"
	_ = json.NewEncoder(&page).Encode(npmPackage{ // strings can be encoded
		Name: name, Description: text, Tags: map[string]string{"latest": version},
		Versions: map[string]npmPackageVersion{version: {
			Name: name, Version: version, Description: text, Deprecated: text,
			Dist: map[string]string{"tarball": "http://" + ownName + "/none.tgz", "shasum": strings.Repeat("0", 40)},
		}},
	})
	return page
}
