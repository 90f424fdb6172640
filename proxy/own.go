package proxy

import (
	"bytes"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"robotsgate/internal/escape"
	"robotsgate/policy"
)

// ownName is the gate's host name for its clients: no other host can have a name under .invalid
// (RFC 6761, 6.4). A client that receives a page from it uses a gate and, over https, trusts its
// CA.
const ownName = "robotsgate.invalid"

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
	address := ownAddress(r)
	var page bytes.Buffer
	switch ownPath(r) {
	case "/":
		h.Set("Vary", "Accept")
		if negotiate(r.Header["Accept"]) == "text/html" {
			h.Set("Content-Type", "text/html; charset=utf-8")
			_ = ownPage.Execute(&page, ownFacts{address, howTo(address)}) // which TestOwnPageForms does too
			break
		}
		h.Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(&page, ownText, address)
		for _, c := range howTo(address) {
			fmt.Fprintf(&page, "\n%s\n", c.Client)
			for _, line := range c.Lines {
				fmt.Fprintf(&page, "    %s\n", line)
			}
		}
	case "/ca.pem":
		h.Set("Content-Type", "application/x-pem-file")
		page.Write(p.CA())
	case "/bundle.pem":
		h.Set("Content-Type", "application/x-pem-file")
		page.Write(p.Bundle())
	case "/crawler":
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		p.introduce(&page, r)
	case "/proxy.pac":
		h.Set("Content-Type", "application/x-ns-proxy-autoconfig")
		fmt.Fprintf(&page, ownPAC, address, route(r, address))
	default:
		http.Error(w, "robotsgate: this is a proxy; send it absolute URLs, or set http_proxy=http://"+address, http.StatusNotFound)
		return
	}
	if page.Len() == 0 { // see Options.CA and Options.Bundle
		http.Error(w, "robotsgate: this gate does not offer this file", http.StatusNotFound)
		return
	}
	h.Set("Content-Length", strconv.Itoa(page.Len())) // for HEAD as well
	w.Write(page.Bytes())
}

// introduce writes which crawler the gate takes a client for, or why it refuses the client,
// and then the certificates, so that robotsgate doctor needs one request only.
func (p *Proxy) introduce(page *bytes.Buffer, r *http.Request) {
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	k, refused := p.identify(p.settings.Load(), r, client.Addr().Unmap(), false)
	if refused != nil {
		fmt.Fprintf(page, "refused: %s\n", escape.Printable(refused.detail))
	} else {
		fmt.Fprintf(page, "crawler: %s\n", escape.Printable(k.Name))
	}
	page.Write(p.CA())
}

// ownPath returns the requested path as it was sent: after two slashes no host name follows here.
func ownPath(r *http.Request) string {
	uri := r.RequestURI
	if !strings.HasPrefix(uri, "/") { // an absolute URL, as sent to a proxy
		_, uri, _ = strings.Cut(uri, "://")
		i := strings.IndexAny(uri, "/?")
		if i < 0 || uri[i] == '?' {
			return "/"
		}
		uri = uri[i:]
	}
	path, _, _ := strings.Cut(uri, "?")
	return path
}

// ownAddress returns the address at which the client has reached the gate: its Host field, since
// the socket's address may be one behind a port mapping. It stands in commands for copying, so
// only these characters are allowed.
func ownAddress(r *http.Request) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]"
	if t, err := policy.ParseTarget("http", r.Host, "/"); err == nil && t.Hostname() != ownName {
		if _, port := policy.SplitPort(r.Host); port != "" && strings.Trim(t.Address(), letters) == "" {
			return t.Address()
		}
	}
	return r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
}

// route returns the proxy in the syntax of a configuration script. A client that fetches the
// script over TLS can speak TLS to the proxy too, which hides its requests and its login.
func route(r *http.Request, address string) string {
	_, tunnelled := r.Context().Value(tunnelKey{}).(*tunnel)
	if c := clientOf(r); !tunnelled && c != nil && c.InTLS() {
		return "HTTPS " + address + "; PROXY " + address
	}
	return "PROXY " + address
}

// ownPAC sends directly what no_proxy excludes, and the gate's own pages. Browsers remove the
// path of an https URL before they call the script.
const ownPAC = `function FindProxyForURL(url, host) {
  if (host == "localhost" || host == "::1" || host == "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host) ||
      url.indexOf("http://%[1]s/") == 0 || url.indexOf("https://%[1]s/") == 0) return "DIRECT";
  return "%[2]s";
}
`

const ownText = `This is robotsgate, a forward proxy that enforces robots rules on what goes through it.

Set a client's proxy to http://%[1]s for http and https, and let it trust
http://%[1]s/ca.pem. On the gate's machine robotsgate env prints all
that a shell needs, and robotsgate doctor reports what is missing:

    eval "$(robotsgate env)"

Clients of the gate find this page at http://robotsgate.invalid/, and at
http://robotsgate.invalid/crawler the crawler that the gate takes them for.

Elsewhere, the lines for each client. They find the CA in ca.pem, and trust that alone;
bundle.pem in its place trusts the public CAs too, for hosts that the gate passes through:

    curl -o ca.pem http://%[1]s/ca.pem
    curl -o bundle.pem http://%[1]s/bundle.pem
`

type ownFacts struct {
	Address string
	Clients []clientLines
}

var ownPage = template.Must(template.New("own").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex"><meta name="viewport" content="width=device-width">
<title>robotsgate</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:3em auto;padding:0 1em}pre{overflow-x:auto;background:#f4f4f4;padding:.5em}h2{font-size:1em}</style>
</head><body><h1>robotsgate</h1>
<p>This is a forward proxy that enforces robots rules on what goes through it.</p>
<p>Set a client's proxy to <code>http://{{.Address}}</code> for http and https, and let it trust <a href="/ca.pem">the certificate of its CA</a>.
Browsers take <a href="/proxy.pac">the automatic configuration</a>. On the gate's machine <code>robotsgate env</code> prints all that a shell
needs, and <code>robotsgate doctor</code> reports what is missing:</p>
<pre>eval "$(robotsgate env)"</pre>
<p>Clients of the gate find this page at <code>http://robotsgate.invalid/</code>, and at <code>/crawler</code> there the crawler that the gate takes them for.</p>
<p>Elsewhere, the lines for each client. They find the CA in <code>ca.pem</code>, and trust that alone; <code>bundle.pem</code> in its place trusts the public CAs too, for hosts that the gate passes through:</p>
<pre>curl -o ca.pem http://{{.Address}}/ca.pem
curl -o bundle.pem http://{{.Address}}/bundle.pem</pre>
{{range .Clients}}<h2>{{.Client}}</h2>
<pre>{{range .Lines}}{{.}}
{{end}}</pre>
{{end}}</body></html>
`))
