package client

import (
	"net/http"
	"slices"
	"strings"
)

// A Kind is a kind of client, such as curl, as far as CONNECT shows it.
type Kind struct {
	name   string
	agents []string // beginnings of its User-Agent, in lower case
	trust  string   // how to make it trust ca.pem
}

// kinds in the order in which they are tried. The log has only texts from this table, never a
// User-Agent.
var kinds = []*Kind{
	{"curl", []string{"curl/"}, "curl --cacert ca.pem, or the variable CURL_CA_BUNDLE"},
	{"wget", []string{"wget/"}, "wget --ca-certificate=ca.pem, or that setting as ca_certificate in ~/.wgetrc"},
	{"git", []string{"git/"}, "the variable GIT_SSL_CAINFO, or git config http.sslCAInfo"},
	{"requests", []string{"python-requests/"}, "the variable REQUESTS_CA_BUNDLE, or verify='ca.pem'"},
	{"Scrapy, or another client of Twisted", []string{"scrapy/", "twisted"}, "the variable SSL_CERT_FILE"},
	{"Python", []string{"python", "aiohttp/"}, "the variable SSL_CERT_FILE"},
	{"npm, pnpm or yarn", []string{"npm/", "pnpm/", "yarn/"}, "the variable npm_config_cafile"},
	{"Node", []string{"node", "undici", "axios/", "got "}, "the variable NODE_EXTRA_CA_CERTS"},
	{"Java", []string{"java", "apache-httpclient/", "okhttp/"},
		"keytool -importcert -noprompt -alias robotsgate -file ca.pem -keystore trust.p12 -storepass changeit, then java -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"},
	{"Go", []string{"go-http-client/"}, "the variable SSL_CERT_FILE on Linux, the system's trust store elsewhere"},
	{"aria2", []string{"aria2/"}, "aria2c --ca-certificate=ca.pem"},
	{"PHP", []string{"php", "guzzlehttp/"}, "curl.cainfo and openssl.cafile in php.ini"},
	{"a browser, or a client with a browser's User-Agent", []string{"mozilla/", "opera/"},
		"a browser's settings, where ca.pem is imported as an authority for websites; Chromium on Linux: certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n robotsgate -i ca.pem; others: as the gate's own page says"},
}

// Clients that send no User-Agent on CONNECT. Different clients send the same head, so the names
// list all that are known.
var (
	pythonOld = &Kind{name: "requests, or Python's http.client", trust: "the variables REQUESTS_CA_BUNDLE and SSL_CERT_FILE"}
	nodeFetch = &Kind{name: "Node, or another client without a User-Agent", trust: "Node: the variable NODE_EXTRA_CA_CERTS; others: as the gate's own page says"}
	noAgent   = &Kind{name: "npm, pnpm, libcurl as in PHP, or another client without a User-Agent",
		trust: "npm and pnpm: the variable npm_config_cafile; other clients of Node: the variable NODE_EXTRA_CA_CERTS; PHP: curl.cainfo in php.ini; libcurl: CURLOPT_CAINFO"}
	// Among them Java's HttpClient.
	unknown = &Kind{name: "unknown", trust: "eval \"$(robotsgate env)\" in the shell that starts it; Java and others that read no variables: as the gate's own page says"}
	// Clients that speak TLS to the gate's own port, which identify themselves only inside.
	tlsProxy = &Kind{name: "wget2, a client with an https:// proxy, or one that robotsgate doctor has tried", trust: "wget2 --ca-certificate=ca.pem, curl --proxy-cacert ca.pem, or http:// in the proxy's URL"}
)

// KindOf returns the kind of client that sends a CONNECT: by its User-Agent, or without one by
// the form of the head. r is nil if the client has sent none.
func KindOf(r *http.Request) *Kind {
	if r == nil {
		return unknown
	}
	agent := r.Header.Get("User-Agent")
	agent = strings.ToLower(agent[:min(len(agent), 32)])
	for _, k := range kinds {
		if slices.ContainsFunc(k.agents, func(begin string) bool { return strings.HasPrefix(agent, begin) }) {
			return k
		}
	}
	switch {
	case agent != "":
		return unknown
	case !r.ProtoAtLeast(1, 1) && len(r.Header) == 0:
		return pythonOld
	case strings.EqualFold(r.Header.Get("Connection"), "close"):
		return nodeFetch
	case r.Header.Get("Proxy-Connection") != "":
		return noAgent
	}
	return unknown
}
