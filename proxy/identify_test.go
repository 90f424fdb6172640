package proxy

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"

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

// In IPv6 all addresses of a /64 count as one for comparisons of passwords: if more of their logins wait than may of one
// address, one is refused.
func TestLoginsFromOneNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes while passwords are compared
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := clients{log: slog.New(slog.DiscardHandler), verifier: auth.NewVerifier()}
		login := loginOf(t, "team", "a password")
		const flood = 400
		ended := make(chan error, flood)
		for n := range flood {
			from := sender{login: auth.New("team", fmt.Sprint("guess ", n))}
			from.Addr = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", n))
			go func() {
				i := c.begin(ctx, from)
				i.proves(&login)
				ended <- i.err
			}()
		}
		for range flood {
			if errors.Is(<-ended, auth.ErrBusy) {
				return
			}
		}
		t.Error("none is refused")
	})
}
