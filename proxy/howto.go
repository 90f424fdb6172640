package proxy

import "net"

// clientLines are the lines to copy into a shell to use one kind of client with the gate.
type clientLines struct {
	Client string
	Lines  []string
}

// howTo returns the lines for common clients to use the gate at this address, with the CA in
// ca.pem. TestOwnPageLines runs them.
func howTo(address string) []clientLines {
	gate := "http://" + address
	host, port, _ := net.SplitHostPort(address)
	vars := "http_proxy=" + gate + " https_proxy=" + gate + " "
	return []clientLines{
		{"curl", []string{"curl -x " + gate + " --cacert ca.pem https://example.com/"}},
		{"wget", []string{"wget -O - -e use_proxy=yes -e http_proxy=" + address + " -e https_proxy=" + address + " --ca-certificate=ca.pem https://example.com/"}},
		{"wget2", []string{"wget2 -O - --http-proxy=" + address + " --https-proxy=" + address + " --ca-certificate=ca.pem https://example.com/"}},
		{"Scrapy (it checks no certificates)", []string{vars + "scrapy fetch https://example.com/"}},
		{"Python: requests", []string{vars + `REQUESTS_CA_BUNDLE=ca.pem python3 -c 'import requests; print(requests.get("https://example.com/").text)'`}},
		{"Python: httpx, urllib, aiohttp with trust_env", []string{vars + `SSL_CERT_FILE=ca.pem python3 -c 'import urllib.request; print(urllib.request.urlopen("https://example.com/").read())'`}},
		{"Node 22.21, 24.5 or later", []string{vars + `NODE_USE_ENV_PROXY=1 NODE_EXTRA_CA_CERTS=ca.pem node -e 'fetch("https://example.com/").then(r => r.text()).then(console.log)'`}},
		{"Node before that, with undici from npm", []string{vars + `NODE_EXTRA_CA_CERTS=ca.pem node -e 'const u = require("undici"); u.setGlobalDispatcher(new u.EnvHttpProxyAgent()); u.fetch("https://example.com/").then(r => r.text()).then(console.log)'`}},
		{"Go, on Linux", []string{vars + "SSL_CERT_FILE=ca.pem ./your-program"}},
		{"Java", []string{
			"keytool -importcert -noprompt -alias robotsgate -file ca.pem -keystore trust.p12 -storepass changeit",
			"java -Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port + " -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port +
				" -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit YourProgram.java",
		}},
		{"PHP", []string{`php -d curl.cainfo="$PWD/ca.pem" -r '$c = curl_init("https://example.com/"); curl_setopt($c, CURLOPT_PROXY, "` + gate + `"); curl_exec($c);'`}},
		{"aria2", []string{"aria2c --all-proxy=" + gate + " --ca-certificate=ca.pem https://example.com/"}},
		{"git", []string{"git -c http.proxy=" + gate + " -c http.sslCAInfo=ca.pem clone https://example.com/project.git"}},
		{"Browsers", []string{"automatic configuration: " + gate + "/proxy.pac", "authority for websites: ca.pem"}},
	}
}
