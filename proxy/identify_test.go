package proxy

import (
	"encoding/base64"
	"log/slog"
	"net/netip"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/auth"
)

// loginOf returns a login whose password costs little to compare.
func loginOf(tb testing.TB, user, password string) policy.Login {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		tb.Fatal(err)
	}
	return policy.Login{User: user, Hash: string(hash)}
}

// BenchmarkKnownLogin measures the cost of a login that has been compared before.
func BenchmarkKnownLogin(b *testing.B) {
	engine, err := policy.New(policy.Config{
		Crawlers: policy.Crawlers{Known: []*policy.Crawler{{Name: "news", Login: loginOf(b, "team", "a password")}}, Default: &policy.Crawler{}, RefuseUnknown: true},
		Robots:   policy.Robots{Settings: snapshot.Settings{CacheBytes: 1 << 20}},
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	c := &clients{log: slog.New(slog.DiscardHandler), verifier: auth.NewVerifier()}
	from := sender{Client: policy.Client{Addr: netip.MustParseAddr("127.0.0.1")}, conn: &connection{}}
	header := []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("team:a password"))}
	b.ReportAllocs()
	for b.Loop() {
		from.login = auth.Parse(header)
		if k, no := c.identify(b.Context(), engine.Crawlers(), from); no != nil || k.Name != "news" {
			b.Fatal(no, k)
		}
	}
}
