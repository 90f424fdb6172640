package proxy

import (
	"net/http"
	"net/netip"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/auth"
)

// BenchmarkKnownLogin measures the cost of a login that has been compared before.
func BenchmarkKnownLogin(b *testing.B) {
	engine, err := policy.New(policy.Config{
		Crawlers: policy.Crawlers{Known: []*policy.Crawler{{Name: "news", Login: loginFor("team", newsPassword)}}, Default: &policy.Crawler{}, RefuseUnknown: true},
		Robots:   policy.Robots{Settings: snapshot.Settings{CacheBytes: 1 << 20}},
		Log:      quietLog,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	p := &Proxy{verifier: auth.NewVerifier()}
	r, _ := http.NewRequest(http.MethodGet, "http://example.com/", nil)
	r.Header.Set("Proxy-Authorization", basic("team", newsPassword))
	client := netip.MustParseAddr("127.0.0.1")
	b.ReportAllocs()
	for b.Loop() {
		if k, pr := p.identify(&Settings{Engine: engine}, r, client, false); pr != nil || k.Name != "news" {
			b.Fatal(pr, k)
		}
	}
}
