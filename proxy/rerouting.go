package proxy

import (
	"bytes"
	"net/http"
	"strings"
)

// A reroutingField is a request header from which a server, a framework or a proxy in front
// of them takes the path, the host or the scheme, in place of what the request names. A client
// that sends one could have one URL judged and receive another. Browsers and crawlers have no
// use for them: reverse proxies set them, for the servers behind them.
type reroutingField struct {
	name   string // in lower case, with a hyphen for every mark
	effect string
	source string // where it is read or documented
}

const (
	asPath   = "replaces the path"
	asMount  = "is taken for the mount point, and so off or onto the front of the path"
	asQuery  = "replaces the query"
	asHost   = "replaces the host, or the server that is asked"
	asScheme = "replaces the scheme or the port, which are part of an origin (RFC 9309, 2.3)"

	cgi     = "a CGI variable (RFC 3875, 4.1): mistaken for it where headers become variables without the prefix HTTP_"
	guessed = "no reader known; on lists of headers that are tried against access rules"
)

// reroutingFields are removed from every request. Servers read most of them only where they
// are configured to, or where a proxy usually overwrites them; the gate cannot know which.
//
// These look alike and are passed on:
//
//   - X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override: robots.txt has no methods, so
//     the decision is the same. Clients of REST services need them, for GETs with a long query.
//   - X-Forwarded-For, X-Forwarded-By, X-Real-IP, Via and other names of clients and proxies:
//     they tell where a request comes from.
//   - Destination (RFC 4918, 10.3), Referer, Origin, Range, Accept and Accept-*: they belong to
//     the request, and servers choose by them among the answers for one URL.
//   - Next-URL: Next.js' own pages send it, and it names the page that the user comes from.
//   - X-Requested-With, HX-*, Turbo-Frame: pages send them, to receive a part of the same page.
var reroutingFields = []reroutingField{
	// Names of CGI's variables (RFC 3875, 4.1), which some servers take from headers.
	{"script-name", asMount, "gunicorn http/wsgi.py; handlers that copy HTTP_SCRIPT_NAME to SCRIPT_NAME"},
	{"path-info", asPath, "gunicorn: forwarder_headers in its settings; " + cgi},
	{"request-uri", asPath, cgi},
	{"query-string", asQuery, cgi},
	{"script-url", asPath, cgi + "; Django django/core/handlers/wsgi.py reads SCRIPT_URL"},
	{"script-filename", asPath, cgi + "; PHP main/fopen_wrappers.c reads SCRIPT_FILENAME"},
	{"path-translated", asPath, cgi + "; PHP sapi/cgi/cgi_main.c reads PATH_TRANSLATED"},
	{"document-uri", asPath, cgi},
	{"document-root", asPath, cgi},
	{"redirect-url", asPath, cgi + "; Django django/core/handlers/wsgi.py reads REDIRECT_URL"},
	{"unencoded-url", asPath, cgi + "; Laminas laminas-http PhpEnvironment/Request.php reads UNENCODED_URL"},
	{"server-name", asHost, cgi},
	{"server-port", asScheme, cgi},
	{"request-scheme", asScheme, cgi},
	{"https", asScheme, "WooCommerce read HTTP_HTTPS, which Chrome 44 sent; " + cgi},

	// The path as it was before a rewrite.
	{"x-original-url", asPath, "IIS URL Rewrite; Symfony (CVE-2018-14773); Laminas PhpEnvironment/Request.php; WordPress wp-includes/load.php"},
	{"x-rewrite-url", asPath, "ISAPI_Rewrite; Symfony (CVE-2018-14773); Yii web/Request.php; WordPress wp-includes/load.php"},
	{"x-original-uri", asPath, "ingress-nginx nginx.tmpl sets it; PHP and Python applications read HTTP_X_ORIGINAL_URI"},
	{"x-original-path", asPath, "WSGI applications read HTTP_X_ORIGINAL_PATH"},
	{"x-original-pathname", asPath, "PHP applications on Vercel read HTTP_X_ORIGINAL_PATHNAME"},
	{"x-original-request", asPath, "PHP applications read HTTP_X_ORIGINAL_REQUEST"},
	{"x-original-request-uri", asPath, "Rack and WSGI applications read HTTP_X_ORIGINAL_REQUEST_URI"},
	{"x-original-request-url", asPath, "PHP applications read HTTP_X_ORIGINAL_REQUEST_URL"},
	{"x-original-prefix", asMount, "ASP.NET Core ForwardedHeadersDefaults.cs"},
	{"x-rewrite-uri", asPath, guessed},
	{"x-rewrite-path", asPath, guessed},
	{"x-request-uri", asPath, "NewLife.Core GetRawUrl; PHP and Django applications read HTTP_X_REQUEST_URI"},
	{"x-replaced-path", asPath, "Traefik middlewares/replacepath sets it, for the server to read"},
	{"x-envoy-original-path", asPath, "Envoy, HTTP header manipulation: set where a route rewrites the path"},
	{"x-ms-original-url", asPath, "Azure Static Web Apps set it for functions"},
	{"x-waws-unencoded-url", asPath, "Azure App Service sets it; Express applications there read it"},
	{"x-matched-path", asPath, "Next.js server/base-server.ts in minimal mode; functions on Vercel"},
	{"x-invoke-path", asPath, "Next.js 13 server/base-server.ts; functions on Vercel"},
	{"x-invoke-query", asQuery, "Next.js 13 server/base-server.ts"},
	{"x-now-route-matches", asPath, "Nitro presets/vercel; Next.js server/server-utils.ts"},
	{"x-middleware-rewrite", asPath, "Next.js: one of its INTERNAL_HEADERS"},
	{"x-vercel-original-path", asPath, "WSGI applications on Vercel"},
	{"x-vercel-original-pathname", asPath, "WSGI applications on Vercel"},
	{"x-vercel-path", asPath, "WSGI applications on Vercel"},
	{"x-astro-path", asPath, "Astro @astrojs/vercel before 10.0.2 (GHSA-mr6q-rp88-fx84)"},
	{"xajp-path-info", asPath, "Lucee CGIImplReadOnly.java; mod_cfml and BonCode set it"},
	{"x-path-info", asPath, "PHP applications on IIS read HTTP_X_PATH_INFO"},
	{"x-real-path", asPath, "WSGI applications on Vercel"},
	{"x-real-url", asPath, "mikupad server.js; Rack applications read HTTP_X_REAL_URL"},
	{"x-forward-url", asPath, "forwarders written as applications; Dapr middleware invoke sets it"},
	{"x-proxy-url", asPath, "php-cross-domain-proxy proxy.php"},
	{"x-cf-forwarded-url", asPath, "Cloud Foundry route services"},

	// The path or its beginning as a reverse proxy received it.
	{"forwarded", "replaces host, scheme and, in Sanic, path", "RFC 7239; Spring ForwardedHeaderFilter; Sanic sanic/headers.py"},
	{"x-forwarded-uri", asPath, "Traefik and Caddy forward_auth set it; functions on Vercel read it"},
	{"x-forwarded-url", asPath, "PHP and WSGI applications read HTTP_X_FORWARDED_URL"},
	{"x-forwarded-request-uri", asPath, "WOVN.php Headers.php"},
	{"x-forwarded-path", asPath, "Kong sets it; Sanic sanic/headers.py reads it"},
	{"x-forwarded-path-info", asPath, guessed},
	{"x-forwarded-prefix", asMount, "Werkzeug ProxyFix; Spring ForwardedHeaderFilter; Symfony and Laravel trusted proxies"},
	{"x-forwarded-context", asMount, "Apache NiFi WebUtils.java; Apache Knox"},
	{"x-forwarded-script-name", asMount, "mod_wsgi WSGITrustedProxyHeaders; Plack::Middleware::ReverseProxyPath"},
	{"x-script-name", asMount, "mod_wsgi WSGITrustedProxyHeaders"},
	{"x-traversal-path", asMount, "Plack::Middleware::ReverseProxyPath; WSGIProxy"},
	{"x-vhm-root", asMount, "repoze.vhm; Pyramid traversal.py"},
	{"x-proxycontextpath", asMount, "Apache NiFi WebUtils.java"},
	{"x-request-base", asMount, "Convos and other Mojolicious applications"},
	{"request-base", asMount, "Dancer::Request reads HTTP_REQUEST_BASE"},
	{"daphne-root-path", asMount, "Daphne http_protocol.py"},
	{"x-ingress-path", asMount, "Home Assistant's ingress sets it; ASGI applications set root_path from it"},
	{"x-tomcat-docroot", "replaces the folder that is served", "mod_cfml; CommandBox Runwar"},

	// What a server hands to its front-end as the file to serve.
	{"x-sendfile-type", "makes the front-end serve another path", "Rack::Sendfile (CVE-2025-61780); Plack::Middleware::XSendfile"},
	{"x-accel-mapping", "names that path", "Rack::Sendfile (CVE-2025-61780); Plack::Middleware::XSendfile"},

	// The host, the site, or the server behind it.
	{"x-forwarded-host", asHost, "Werkzeug ProxyFix; Rack; Symfony; Spring; Django USE_X_FORWARDED_HOST"},
	{"x-forwarded-server", asHost, "mod_wsgi WSGITrustedProxyHeaders; Jetty ForwardedRequestCustomizer"},
	{"x-original-host", asHost, "ASP.NET Core ForwardedHeadersDefaults.cs; Azure Application Gateway sets it"},
	{"x-host", asHost, "mod_wsgi WSGITrustedProxyHeaders; lighttpd mod_proxy sets it"},
	{"x-host-override", asHost, "Kong 0.x, core/resolver"},
	{"x-http-host-override", asHost, guessed},
	{"x-vhm-host", asHost, "repoze.vhm"},
	{"x-proxyhost", asHost, "Apache NiFi WebUtils.java"},
	{"disguised-host", asHost, "Azure App Service sets it; applications there read it"},
	{"x-frappe-site-name", "names another site of the server", "Frappe app.py; without it the site is the host's, which is what its own pages send"},
	{"x-envoy-original-dst-host", asHost, "Envoy: clusters of type ORIGINAL_DST with use_http_header"},
	{"x-envoy-original-host", asHost, "Envoy, HTTP header manipulation: set where a route rewrites the host"},
	{"l5d-dst-override", asHost, "Linkerd linkerd2-proxy app/outbound ingress mode"},
	{"l5d-dtab", asHost, "Linkerd 1, per-request routing"},
	{"l5d-ctx-dtab", asHost, "Linkerd 1, per-request routing"},
	{"dtab-local", asHost, "Finagle HttpDtab.scala"},
	{"$wssn", asHost, "WebSphere and Open Liberty: private headers of the web server plug-in"},

	// Scheme and port.
	{"x-forwarded-proto", asScheme, "Astro before 5.15.5 made the path of it (CVE-2025-64525); Rack; Werkzeug ProxyFix; Spring; Symfony; uWSGI core/protocol.c"},
	{"x-forwarded-port", asScheme, "Astro before 5.15.5 made the path of it (CVE-2025-64525); Werkzeug ProxyFix; Spring; Symfony"},
	{"x-forwarded-protocol", asScheme, "gunicorn secure_scheme_headers; Dancer"},
	{"x-forwarded-scheme", asScheme, "Rack rack/request.rb; mod_wsgi WSGITrustedProxyHeaders"},
	{"x-forwarded-ssl", asScheme, "gunicorn secure_scheme_headers; Rack; uWSGI core/protocol.c"},
	{"x-forwarded-https", asScheme, "mod_wsgi WSGITrustedProxyHeaders; Mojolicious"},
	{"x-original-proto", asScheme, "ASP.NET Core ForwardedHeadersDefaults.cs"},
	{"x-scheme", asScheme, "Tornado httpserver.py xheaders; mod_wsgi WSGITrustedProxyHeaders"},
	{"x-https", asScheme, "mod_wsgi WSGITrustedProxyHeaders"},
	{"x-url-scheme", asScheme, "WSGI and PHP applications read HTTP_X_URL_SCHEME"},
	{"x-client-scheme", asScheme, "NewLife.Core GetRawUrl; a content delivery network sets it"},
	{"x-proxied-https", asScheme, "Jetty ForwardedRequestCustomizer"},
	{"x-proxyscheme", asScheme, "Apache NiFi WebUtils.java"},
	{"x-proxyport", asScheme, "Apache NiFi WebUtils.java"},
	{"x-arr-ssl", asScheme, "IIS ARR sets it; ASP.NET applications read it"},
	{"x-appservice-proto", asScheme, "Azure App Service sets it; functions read it"},
	{"front-end-https", asScheme, "Exchange and ISA Server; Ktor XForwardedHeaders; PHP applications"},
	{"cloudfront-forwarded-proto", asScheme, "CloudFront sets it; PHP applications read it"},
	{"cf-visitor", asScheme, "Cloudflare sets it; its WordPress plugin reads it"},
	{"wl-proxy-ssl", asScheme, "WebLogic, WebLogic Plug-In Enabled"},
	{"$wssc", asScheme, "WebSphere and Open Liberty: private headers of the web server plug-in"},
	{"$wssp", asScheme, "WebSphere and Open Liberty: private headers of the web server plug-in"},
	{"$wsis", asScheme, "WebSphere and Open Liberty: private headers of the web server plug-in"},

	// Cheap to remove, and nothing sends them.
	{"original-url", asPath, guessed},
	{"base-url", asPath, guessed},
	{"http-url", asPath, guessed},
	{"x-override-url", asPath, guessed},
	{"x-override-uri", asPath, guessed},
	{"x-http-path-override", asPath, guessed},
	{"x-http-url-override", asPath, guessed},
	{"x-http-destinationurl", asPath, guessed},
	{"x-custom-url", asPath, guessed},
	{"x-proxy-path", asPath, guessed},
}

// maxPlainName is longer than any name that dropRerouting looks for, in bytes.
const maxPlainName = 64

// reroutingNames has the names of reroutingFields as plainName writes them.
var reroutingNames = func() map[string]bool {
	names := make(map[string]bool, len(reroutingFields))
	for _, f := range reroutingFields {
		names[string(plainName(make([]byte, 0, maxPlainName), f.name))] = true
	}
	return names
}()

// framing are headers that only net/http may write. In another spelling they come to it as
// any others.
var framing = map[string]bool{"content-length": true, "transfer-encoding": true, "connection": true, "host": true}

// dropRerouting removes reroutingFields from a request's header in every spelling that a
// server may take for theirs, and in such spellings the gate's own headers, the headers of
// framing and the client's login.
func dropRerouting(h http.Header) {
	for name := range h {
		var buf [maxPlainName]byte
		plain := plainName(buf[:0], name)
		if reroutingNames[string(plain)] || framing[string(plain)] && !strings.EqualFold(name, string(plain)) ||
			string(plain) == "proxy-authorization" || bytes.HasPrefix(plain, ownPrefixPlain) {
			delete(h, name)
		}
	}
}

var ownPrefixPlain = []byte(strings.ToLower(ownPrefix))

// plainName appends a field's name in lower case, with a hyphen for every other character, as
// far as there is room. Servers that hand headers on as variables write "_" for a hyphen (RFC
// 3875, 4.1.18) and lighttpd does so for all that is neither letter nor digit (http_cgi.c):
// what differs in these only is one header to them.
func plainName(to []byte, name string) []byte {
	for i := range min(len(name), cap(to)) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		case !('a' <= c && c <= 'z') && !('0' <= c && c <= '9'):
			c = '-'
		}
		to = append(to, c)
	}
	return to
}
