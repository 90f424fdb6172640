package proxy

import (
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strings"
	"time"

	"robotsgate/policy"
)

// serveOwn answers requests to the gate itself: what it is, the certificate to
// trust, and a configuration script.
func (p *Proxy) serveOwn(w http.ResponseWriter, r *http.Request) {
	control, now := http.NewResponseController(w), time.Now()
	_ = control.SetWriteDeadline(now.Add(2 * p.Limits.HeaderTimeout))
	if r.ContentLength != 0 { // net/http looks first for the end of a body that nobody reads
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
	switch path, _, _ := strings.Cut(r.RequestURI, "?"); path {
	case "/":
		h.Set("Vary", "Accept")
		if preferred(r.Header["Accept"]) == "text/html" {
			h.Set("Content-Type", "text/html; charset=utf-8")
			_ = ownPage.Execute(w, ownFacts{address, settings(address)}) // the client left
			return
		}
		h.Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, ownText, address)
		for _, s := range settings(address) {
			fmt.Fprintf(w, "%-10s %s\n", s.Client, s.Setting)
		}
	case "/ca.pem":
		h.Set("Content-Type", "application/x-pem-file")
		w.Write(p.CA())
	case "/proxy.pac":
		h.Set("Content-Type", "application/x-ns-proxy-autoconfig")
		fmt.Fprintf(w, "function FindProxyForURL(url, host) { return \"PROXY %s\"; }\n", address)
	default:
		http.Error(w, "robotsgate: this is a proxy; send it absolute URLs, or set http_proxy=http://"+address, http.StatusNotFound)
	}
}

// ownAddress is where the client has found the gate: the Host that it asked for,
// since the socket's address may be one behind a port mapping.
func ownAddress(r *http.Request) string {
	if t, err := policy.ParseTarget("http", r.Host, "/"); err == nil {
		if _, port := policy.SplitPort(r.Host); port != "" {
			return t.Address()
		}
	}
	return r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
}

type setting struct{ Client, Setting string }

// settings says how common clients are told of the gate.
func settings(address string) []setting {
	return []setting{
		{"curl", "curl -x http://" + address + " --cacert ca.pem https://example.com/"},
		{"wget", "wget -e use_proxy=yes -e http_proxy=" + address + " -e https_proxy=" + address + " --ca-certificate=ca.pem https://example.com/"},
		{"Scrapy", "http_proxy and https_proxy in the environment"},
		{"requests", "http_proxy, https_proxy and REQUESTS_CA_BUNDLE in the environment"},
		{"Node", "NODE_USE_ENV_PROXY=1 and NODE_EXTRA_CA_CERTS=ca.pem with http_proxy and https_proxy"},
		{"Go", "http_proxy, https_proxy and SSL_CERT_FILE in the environment"},
		{"Java", "-Dhttp.proxyHost, -Dhttp.proxyPort, -Dhttps.proxyHost, -Dhttps.proxyPort, and ca.pem in a trust store"},
		{"aria2", "--all-proxy=http://" + address + " --ca-certificate=ca.pem"},
		{"PHP", "CURLOPT_PROXY, and curl.cainfo in php.ini"},
		{"browsers", "the automatic configuration http://" + address + "/proxy.pac, and ca.pem as an authority for websites"},
	}
}

const ownText = `This is robotsgate, a forward proxy that enforces robots rules on what goes through it.

Set a client's proxy to http://%[1]s for http and https, and let it trust
http://%[1]s/ca.pem. For a shell, robotsgate env prints all that is needed:

    eval "$(robotsgate env)"

`

type ownFacts struct {
	Address  string
	Settings []setting
}

var ownPage = template.Must(template.New("own").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex"><meta name="viewport" content="width=device-width">
<title>robotsgate</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:3em auto;padding:0 1em}th{text-align:left;padding-right:1em;vertical-align:top}td{overflow-wrap:anywhere}</style>
</head><body><h1>robotsgate</h1>
<p>This is a forward proxy that enforces robots rules on what goes through it.</p>
<p>Set a client's proxy to <code>http://{{.Address}}</code> for http and https, and let it trust <a href="/ca.pem">the certificate of its CA</a>.
Browsers take <a href="/proxy.pac">the automatic configuration</a>. For a shell, <code>robotsgate env</code> prints all that is needed:</p>
<pre>eval "$(robotsgate env)"</pre>
<table>{{range .Settings}}<tr><th>{{.Client}}</th><td><code>{{.Setting}}</code></td></tr>
{{end}}</table></body></html>
`))
