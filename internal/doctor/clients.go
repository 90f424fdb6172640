package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"robotsgate/internal/escape"
)

// A program is a client that doctor can check. Its commands and advice have placeholders in
// braces, see [diagnosis.expand].
type program struct {
	name    string
	also    []string // other names of its command
	browser bool     // see browsers.go
	page    string   // the page that tells the client what it is; empty: /crawler
	fault   string   // the page that is requested to find a fault; empty: /ca.pem, which not every client can read
	get     []string // the command that prints the contents of {url}; nil: requests are sent by this process
	has     []string // a command that succeeds if the program can be checked; nil: it always can
	// Advice if it does not trust the CA, does not use the gate, or is refused without a login.
	trust, proxy []string
	login        string
	settings     []string // what a client needs that can't be checked; nil: it can
}

const (
	pythonGet = `import sys, requests; sys.stdout.write(requests.get(sys.argv[1], timeout=8).text)`
	nodeGet   = `fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t), () => process.exit(1))`
	javaGet   = `import java.io.*;
import java.net.*;
public class Get {
    public static void main(String[] args) throws Exception {
        try (InputStream in = new URL(args[0]).openStream()) {
            in.transferTo(System.out);
        }
    }
}
`
)

var proxied = []string{"export http_proxy={gate} https_proxy={gate}"}

// A proxy or cafile in an .npmrc takes precedence over the variables of other clients, but not over these.
var (
	npmProxied = []string{"export npm_config_proxy={gate} npm_config_https_proxy={gate}"}
	npmTrust   = []string{"export npm_config_cafile={bundle} NODE_EXTRA_CA_CERTS={ca}"} // pnpm 12 reads the second only
)

var programs = []program{
	{name: "curl", proxy: proxied,
		get:   []string{"curl", "-sS", "--max-time", "8", "{url}"},
		trust: []string{"export CURL_CA_BUNDLE={bundle}"}},
	{name: "wget", proxy: proxied,
		get:   []string{"wget", "-q", "-O", "-", "-T", "8", "-t", "1", "{url}"},
		trust: []string{"export SYSTEM_WGETRC={wgetrc}", "or ca_certificate = {bundle} in ~/.wgetrc"}},
	{name: "wget2", proxy: proxied, page: "/crawler?challenge", // it sends a login only after a 407
		get:   []string{"wget2", "-q", "-O", "-", "-T", "8", "--tries=1", "--no-hsts", "--no-tls-resume", "--no-ocsp", "--no-ocsp-file", "{url}"},
		trust: []string{"export SYSTEM_WGET2RC={wgetrc}", "or ca_certificate = {bundle} in ~/.wget2rc"}},
	{name: "requests", proxy: proxied,
		get:   []string{"python3", "-c", pythonGet, "{url}"},
		has:   []string{"python3", "-c", "import requests"},
		trust: []string{"export REQUESTS_CA_BUNDLE={bundle}"}},
	{name: "scrapy", proxy: proxied,
		get:   []string{"scrapy", "fetch", "--nolog", "{url}"},
		trust: []string{"export SSL_CERT_FILE={bundle}"}},
	{name: "node", proxy: append([]string{"export NODE_USE_ENV_PROXY=1"}, proxied...),
		get:   []string{"node", "-e", nodeGet, "{url}"},
		has:   []string{"node", "-e", "fetch"},
		trust: []string{"export NODE_EXTRA_CA_CERTS={ca}"}},
	{name: "npm", proxy: npmProxied, fault: "/crawler",
		get:   []string{"npm", "view", "crawler", "description", "--registry={registry}", "--cache=npm", "--no-update-notifier"},
		trust: npmTrust},
	{name: "pnpm", proxy: npmProxied, fault: "/crawler",
		get:   []string{"pnpm", "view", "crawler", "description", "--registry={registry}"},
		trust: npmTrust},
	{name: "yarn", proxy: npmProxied, fault: "/crawler",
		get:   []string{"yarn", "--silent", "info", "crawler", "description", "--registry={registry}"},
		has:   []string{"sh", "-c", "case $(yarn --version) in 1.*) ;; *) exit 1 ;; esac"}, // later ones have settings of their own
		trust: npmTrust},
	{name: "java",
		get: []string{"java", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "Get.java", "{url}"},
		has: []string{"java", "--describe-module", "jdk.compiler"},
		trust: []string{
			"keytool -importcert -noprompt -alias robotsgate -file {ca} -keystore trust.p12 -storepass changeit",
			`export JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS -Djavax.net.ssl.trustStore=$PWD/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"`,
		},
		proxy: []string{`export JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS -Dhttp.proxyHost={host} -Dhttp.proxyPort={port} -Dhttps.proxyHost={host} -Dhttps.proxyPort={port}"`},
		login: "Java sends none from a URL: identify it by address, with crawlers[].sources"},
	{name: "go", proxy: proxied,
		trust: []string{"export SSL_CERT_FILE={bundle}"}},
}

// choose returns the programs of these names. Without a name it returns all except browsers: most
// users have one that is not meant to use the gate.
func choose(names []string) (out []program, err error) {
	if len(names) == 0 {
		return programs, nil
	}
	known := slices.Concat(programs, browsers)
	for _, name := range names {
		name = strings.ToLower(name)
		i := slices.IndexFunc(known, func(p program) bool { return p.name == name || slices.Contains(p.also, name) })
		if i < 0 {
			return nil, fmt.Errorf("no client named %q is known: robotsgate doctor --help lists them", name)
		}
		out = append(out, known[i])
	}
	return out, nil
}

// expand replaces the placeholders in lines. {registry} is the URL of which url names a package.
func (e *diagnosis) expand(lines []string, url string) []string {
	_, address, _ := strings.Cut(e.gate.url, "://")
	host, port, _ := net.SplitHostPort(address)
	values := strings.NewReplacer("{url}", url, "{registry}", url[:strings.LastIndex(url, "/")+1], "{gate}", e.proxy(), "{address}", address, "{host}", host, "{port}", port,
		"{ca}", quoteFile(e.files.Cert), "{bundle}", quoteFile(e.files.Bundle), "{wgetrc}", quoteFile(e.files.Wgetrc))
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = values.Replace(line)
	}
	return lines
}

// advice returns what makes a program trust the CA and use the gate.
func (e *diagnosis) advice(ctx context.Context, p program, trusting, proxying bool) (out []string) {
	if e.unset && p.name != "java" && !p.browser && !(p.name == "node" && proxying) {
		return nil // the advice on variables covers it
	}
	if trusting {
		out = append(slices.Clone(e.get), e.expand(p.trust, "")...)
	}
	if !proxying {
		return out
	}
	if p.name == "node" {
		version, _ := run(ctx, "", os.Environ(), []string{"node", "--version"})
		var major, minor int
		fmt.Sscanf(string(version), "v%d.%d", &major, &minor)
		if major < 22 || major == 22 && minor < 21 || major == 23 || major == 24 && minor < 5 {
			return append(out,
				fmt.Sprintf("Node %s does not read the variables by itself: get 22.21, 24.5 or later,", escape.Printable(strings.TrimSpace(string(version)))),
				"or npm install undici, and call setGlobalDispatcher(new EnvHttpProxyAgent())")
		}
	}
	return append(out, e.expand(p.proxy, "")...)
}
