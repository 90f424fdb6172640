package proxy

import (
	"net/http"
	"strings"
)

// A kind is a sort of client, as far as a CONNECT tells, with how it is told to
// trust ca.pem.
type kind struct {
	name   string
	agents []string // how its User-Agent begins, in lower case
	trust  string
}

// kinds are looked through in order. Their names and words are all that a log is
// told, never a User-Agent itself.
var kinds = []*kind{
	{"curl", []string{"curl/"}, "curl --cacert ca.pem, or the variable CURL_CA_BUNDLE"},
	{"wget", []string{"wget/"}, "wget --ca-certificate=ca.pem, or that setting as ca_certificate in ~/.wgetrc"},
	{"git", []string{"git/"}, "the variable GIT_SSL_CAINFO, or git config http.sslCAInfo"},
	{"requests", []string{"python-requests/"}, "the variable REQUESTS_CA_BUNDLE, or verify='ca.pem'"},
	{"Scrapy", []string{"scrapy/", "twisted"}, "the variable SSL_CERT_FILE"},
	{"Python", []string{"python", "aiohttp/"}, "the variable SSL_CERT_FILE"},
	{"Node", []string{"node", "undici", "axios/", "got "}, "the variable NODE_EXTRA_CA_CERTS"},
	{"Java", []string{"java", "apache-httpclient/", "okhttp/"},
		"keytool -importcert -noprompt -alias robotsgate -file ca.pem -keystore trust.p12 -storepass changeit, then java -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"},
	{"Go", []string{"go-http-client/"}, "the variable SSL_CERT_FILE on Linux, the system's trust store elsewhere"},
	{"aria2", []string{"aria2/"}, "aria2c --ca-certificate=ca.pem"},
	{"PHP", []string{"php", "guzzlehttp/"}, "curl.cainfo and openssl.cafile in php.ini"},
	{"a browser", []string{"mozilla/", "opera/"}, "its settings, where ca.pem is imported as an authority for websites"},
}

// Those that send no User-Agent on CONNECT.
var (
	pythonOld = &kind{name: "requests, or Python's http.client", trust: "the variables REQUESTS_CA_BUNDLE and SSL_CERT_FILE"}
	nodeFetch = &kind{name: "Node", trust: "the variable NODE_EXTRA_CA_CERTS"}
	libcurl   = &kind{name: "libcurl, as in PHP", trust: "curl.cainfo in php.ini, or CURLOPT_CAINFO"}
	// Java's HttpClient too, which just hangs up.
	unknown = &kind{name: "unknown", trust: "eval \"$(robotsgate env)\" in the shell that starts it; Java and others that read no variables: as the gate's own page says"}
	// What speaks TLS to the gate's own port says nothing of itself before.
	tlsProxy = &kind{name: "wget2, a client with an https:// proxy, or one that robotsgate doctor has tried", trust: "wget2 --ca-certificate=ca.pem, curl --proxy-cacert ca.pem, or http:// in the proxy's URL"}
)

func kindNamed(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return unknown
}

// kindOf tells who sends a CONNECT: by its User-Agent, or the form of the head
// where there is none.
func kindOf(r *http.Request) *kind {
	agent := r.Header.Get("User-Agent")
	agent = strings.ToLower(agent[:min(len(agent), 32)])
	for _, k := range kinds {
		for _, begin := range k.agents {
			if strings.HasPrefix(agent, begin) {
				return k
			}
		}
	}
	switch {
	case agent != "":
		return unknown
	case !r.ProtoAtLeast(1, 1) && len(r.Header) == 0:
		return pythonOld
	case strings.EqualFold(r.Header.Get("Connection"), "close"):
		return nodeFetch
	case strings.EqualFold(r.Header.Get("Proxy-Connection"), "keep-alive"):
		return libcurl
	}
	return unknown
}
