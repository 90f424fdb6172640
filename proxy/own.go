package proxy

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// serveOwn answers requests to the gate itself: what it is, the certificate to
// trust, and a configuration script.
func (p *Proxy) serveOwn(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "robotsgate: the gate's own pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	address := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	switch path, _, _ := strings.Cut(r.RequestURI, "?"); path {
	case "/":
		h.Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, ownPage, address)
	case "/ca.pem":
		h.Set("Content-Type", "application/x-pem-file")
		w.Write(p.CA)
	case "/proxy.pac":
		h.Set("Content-Type", "application/x-ns-proxy-autoconfig")
		fmt.Fprintf(w, "function FindProxyForURL(url, host) { return \"PROXY %s\"; }\n", address)
	default:
		http.Error(w, "robotsgate: this is a proxy; send it absolute URLs, or set http_proxy=http://"+address, http.StatusNotFound)
	}
}

const ownPage = `This is robotsgate, a forward proxy that enforces robots rules on what goes through it.

Set a client's proxy to http://%[1]s for http and https, and let it trust
http://%[1]s/ca.pem. For a shell, robotsgate env prints all that is needed:

    eval "$(robotsgate env)"

curl       curl -x http://%[1]s --cacert ca.pem https://example.com/
wget       wget -e use_proxy=yes -e http_proxy=%[1]s -e https_proxy=%[1]s --ca-certificate=ca.pem https://example.com/
Scrapy     http_proxy and https_proxy in the environment
requests   REQUESTS_CA_BUNDLE with https_proxy
Node       NODE_USE_ENV_PROXY=1 NODE_EXTRA_CA_CERTS=ca.pem with https_proxy
Java       -Dhttps.proxyHost -Dhttps.proxyPort, and the certificate in a trust store
browsers   http://%[1]s/proxy.pac
`
