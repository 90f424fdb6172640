package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// A proxy needs an engine that decides, an upstream to reach origins through, and
// certificates to present to clients. This one serves plain HTTP alone.
func ExampleNew() {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprintln(w, "User-agent: *\nDisallow: /private/")
		}
	}))
	defer origin.Close()
	upstream, err := proxy.NewTransport(proxy.Egress{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer upstream.Close()
	engine, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: upstream})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	gate, err := proxy.New(proxy.Options{
		Settings: proxy.Settings{Engine: engine, Upstream: upstream},
		Leaf:     func(string) (*tls.Certificate, error) { return nil, errors.New("no CA") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go gate.Serve(l)
	defer gate.Shutdown(context.Background())

	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()})}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/", "/private/plans.html"} {
		resp, err := client.Get(origin.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(path, resp.StatusCode, resp.Header.Get("Robots-Gate-Decision"))
	}
	// Output:
	// / 200 allow;reason=no-match;token="Go-http-client";group="*"
	// /private/plans.html 403 deny;reason=rule;token="Go-http-client";group="*";line=2;rule="Disallow: /private/"
}
