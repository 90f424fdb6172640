package proxy_test

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"strings"
	"testing"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

func TestOwnPages(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, scheme := range []string{"http", "https"} {
		client := &http.Client{Transport: g.ClientVia(scheme, g.Addr, false).Transport.(*http.Transport).Clone()}
		client.Transport.(*http.Transport).Proxy = nil
		t.Cleanup(client.CloseIdleConnections)
		for _, c := range []struct {
			path, contentType string
			status            int
			want              string
		}{
			{"/", "text/plain; charset=utf-8", 200, "http://" + g.Addr + "/ca.pem"},
			{"/?x=y", "text/plain; charset=utf-8", 200, "robotsgate env"},
			{"/ca.pem", "application/x-pem-file", 200, "-----BEGIN CERTIFICATE-----"},
			{"/?", "text/plain; charset=utf-8", 200, "keytool"},
			{"/ca.pem?", "application/x-pem-file", 200, "-----BEGIN CERTIFICATE-----"},
			{"/bundle.pem", "application/x-pem-file", 200, string(g.Proxy.CA()) + proxytest.PublicRoots},
			{"/crawler", "text/plain; charset=utf-8", 200, "crawler: default\n"},
			{"/env", "text/plain; charset=utf-8", 200, "export https_proxy='http://" + g.Addr + "'\n"},
			{"/proxy.pac", "application/x-ns-proxy-autoconfig", 200, "PROXY " + g.Addr + "\";"},
			{"/favicon.ico", "text/plain", 404, "absolute URLs"},
			{"/healthz", "text/plain", 404, "robotsgate:"},
			{"/../ca.pem", "text/plain", 404, "robotsgate:"},
			{"//evil.example/", "text/plain", 404, "robotsgate:"},
		} {
			url := scheme + "://" + g.Addr + c.path
			resp, body := proxytest.Send(t, client, http.MethodGet, url, nil)
			proxytest.WantStatus(t, resp, c.status)
			proxytest.WantHeader(t, resp, "Content-Type", c.contentType)
			proxytest.WantHeader(t, resp, "X-Content-Type-Options", "nosniff")
			if !strings.Contains(body, c.want) {
				t.Errorf("%s: no %q in %s", url, c.want, body)
			}
			resp, none := proxytest.Send(t, client, http.MethodHead, url, nil)
			proxytest.WantStatus(t, resp, c.status)
			if none != "" || resp.ContentLength != int64(len(body)) {
				t.Errorf("HEAD %s: %d bytes, Content-Length %d, want none and %d", url, len(none), resp.ContentLength, len(body))
			}
			for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE"} {
				resp, _ := proxytest.Send(t, client, method, url, nil)
				proxytest.WantStatus(t, resp, 405)
				proxytest.WantHeader(t, resp, "Allow", "GET, HEAD")
			}
		}
	}
	proxytest.WantArrived(t, g)
	if n := len(g.Records()); n > 0 {
		t.Errorf("%d requests to the gate itself are on the record", n)
	}
}

// The certificate is the one that clients must trust, and nothing but it.
func TestOwnCertificate(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + g.Addr + "/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(data)
	if block == nil || len(rest) > 0 {
		t.Fatalf("got %s", data)
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !ca.IsCA {
		t.Fatal(err, ca)
	}
	leaf, err := g.Proxy.Leaf("any.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := leaf.Leaf.CheckSignatureFrom(ca); err != nil {
		t.Error(err)
	}
}

// The pages name the address that the client has used, also where the gate
// listens on all.
func TestOwnAddressOnPages(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Listen: "0.0.0.0:0"})
	_, port, _ := strings.Cut(g.Addr, "]:")
	if port == "" {
		_, port, _ = strings.Cut(g.Addr, ":")
	}
	g.Addr = "127.0.0.1:" + port
	for host, want := range map[string]string{
		"x":                 g.Addr, // without a port it is not where the gate was found
		"gate.example:9309": "gate.example:9309",
		"[::1]:9309":        "[::1]:9309",
		"\"};evil(\":1":     "",
		"$(evil):1":         g.Addr, // a name that a shell would run
		"a'evil:1":          g.Addr,
		"a;evil:1":          g.Addr,
		"a:$(evil)":         "",
		"a:1;evil":          "",
		"<evil>:1":          "",
	} {
		answer := g.Raw("GET /proxy.pac HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
		lines := g.Raw("GET /env HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
		if strings.Contains(lines, "evil") || want != "" && !strings.Contains(lines, "https_proxy='http://"+want+"'") {
			t.Errorf("%s: the lines for a shell are %s", host, lines)
		}
		if want == "" {
			if strings.Contains(answer, "evil") {
				t.Errorf("%s: %s", host, answer)
			}
		} else if !strings.Contains(answer, "PROXY "+want+"\"") {
			t.Errorf("%s: no %q in %s", host, want, answer)
		}
	}
}

func TestOwnPageForms(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for accept, want := range map[string]string{"text/html": "<h1>robotsgate</h1>", "*/*": "This is robotsgate, a forward proxy"} {
		answer := g.Raw("GET / HTTP/1.1\r\nHost: " + g.Addr + "\r\nAccept: " + accept + "\r\nConnection: close\r\n\r\n")
		if !strings.Contains(answer, want) || !strings.Contains(answer, "curl -x http://"+g.Addr+" --cacert ca.pem") {
			t.Errorf("%s: got %s", accept, answer)
		}
		html := strings.Contains(answer, `<meta name="color-scheme" content="light dark">`) && strings.Contains(answer, "pre-wrap;overflow-wrap:anywhere")
		if html != (accept == "text/html") {
			t.Errorf("%s: dark mode and wrapped commands: %v", accept, html)
		}
	}
}

// Under its own name the gate is found by whoever goes through it, by any way.
func TestOwnName(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) {
		o.Settings.Passthrough = func(string) bool { return true } // which does not concern the gate
	}})
	pem := string(g.Proxy.CA())
	for _, url := range []string{"http://robotsgate.invalid/ca.pem", "http://ROBOTSGATE.invalid:80/ca.pem?x", "https://robotsgate.invalid/ca.pem"} {
		for _, http2 := range []bool{false, true} {
			resp, body := proxytest.Send(t, g.ClientVia("http", g.Addr, http2), http.MethodGet, url, nil)
			proxytest.WantStatus(t, resp, 200)
			if body != pem {
				t.Errorf("%s: got %q", url, body)
			}
		}
	}
	for _, url := range []string{"http://robotsgate.invalid", "http://robotsgate.invalid?x", "https://robotsgate.invalid/"} {
		_, body := proxytest.Send(t, g.Client(), http.MethodGet, url, nil)
		if !strings.Contains(body, "curl -x http://"+g.Addr) {
			t.Errorf("%s does not tell where the gate is: %s", url, body)
		}
	}
	resp, body := proxytest.Send(t, g.Client(), http.MethodGet, "https://robotsgate.invalid/proxy.pac", nil)
	proxytest.WantStatus(t, resp, 200)
	if !strings.Contains(body, `return "PROXY `+g.Addr+`";`) {
		t.Errorf("got %s", body)
	}
	proxytest.WantArrived(t, g)
	if n := len(g.Records()); n > 0 {
		t.Errorf("%d requests to the gate itself are on the record", n)
	}

	// A tunnel to it leads nowhere else.
	client := g.Client()
	client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	req, err := http.NewRequest(http.MethodGet, "https://robotsgate.invalid/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example"
	if resp, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	proxytest.WantStatus(t, resp, 421)
}

// A configuration script that is fetched over TLS names an HTTPS proxy.
func TestConfigurationScriptOverTLS(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	client := g.Client()
	client.Transport.(*http.Transport).Proxy = nil
	_, body := proxytest.Send(t, client, http.MethodGet, "https://"+g.Addr+"/proxy.pac", nil)
	if want := `return "HTTPS ` + g.Addr + "; PROXY " + g.Addr + `";`; !strings.Contains(body, want) {
		t.Errorf("no %s in %s", want, body)
	}
}

// A client learns there whether it would be served, by whatever way it comes.
func TestOwnPageNamesTheCrawler(t *testing.T) {
	for _, c := range []struct {
		refuse   bool
		password string
		scheme   string
		want     string
	}{
		{true, proxytest.NewsPassword, "http", "crawler: news\n"},
		{true, proxytest.NewsPassword, "https", "crawler: news\n"},
		{true, "", "http", "refused: This gate serves known crawlers only"},
		{true, "", "https", "refused: This gate serves known crawlers only"},
		{true, "wrong", "https", "refused: This gate serves known crawlers only"},
		{false, "wrong", "https", "crawler: default\n"},
	} {
		g := proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(c.refuse)})
		client := g.Client()
		if c.password != "" {
			client = g.ClientAs(t, false, "team", c.password)
		}
		resp, body := proxytest.Send(t, client, http.MethodGet, c.scheme+"://robotsgate.invalid/crawler", nil)
		proxytest.WantStatus(t, resp, 200)
		if !strings.HasPrefix(body, c.want) {
			t.Errorf("%+v: got %s", c, body)
		}
		if strings.HasPrefix(c.want, "refused") && !strings.Contains(body, "login") {
			t.Errorf("%+v: does not say what is missing: %s", c, body)
		}
	}
}
