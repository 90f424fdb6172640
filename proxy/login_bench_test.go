package proxy

import (
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
	c := &clients{log: quietLog, verifier: auth.NewVerifier()}
	from := sender{Client: policy.Client{Addr: netip.MustParseAddr("127.0.0.1")}, conn: &connection{}}
	header := []string{basic("team", newsPassword)}
	b.ReportAllocs()
	for b.Loop() {
		from.login = auth.Parse(header)
		if k, no := c.identify(b.Context(), engine.Crawlers(), from); no != nil || k.Name != "news" {
			b.Fatal(no, k)
		}
	}
}
