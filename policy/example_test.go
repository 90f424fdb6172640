package policy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"robotsgate/internal/store"
	"robotsgate/policy"
)

// settings are those of the configuration's section robots that matter here.
var settings = policy.Robots{
	MaxAge:       24 * time.Hour,
	MinAge:       5 * time.Minute,
	StaleFor:     720 * time.Hour,
	Timeout:      10 * time.Second,
	MaxBytes:     512 << 10,
	MaxRedirects: 5,
	CacheBytes:   1 << 20,
}

// A gate asks an Engine about every request. The Engine fetches an origin's
// robots.txt once and answers from it as long as it holds.
func ExampleEngine_Decide() {
	fetches := 0
	origin := roundTrip(func(r *http.Request) (*http.Response, error) {
		fetches++
		return &http.Response{
			StatusCode: http.StatusOK,
			Body:       io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /private/\n")),
		}, nil
	})
	everyone := &policy.Crawler{Name: "default", Mode: policy.Enforce, DenyStatus: http.StatusForbidden}
	engine, err := policy.New(policy.Config{
		Crawlers:  policy.Crawlers{Default: everyone},
		Robots:    settings,
		Transport: origin, // the only way out that an Engine has
		Store:     store.NewMemory(1 << 20),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	for _, url := range []string{"https://shop.example/offers.html", "https://shop.example/private/plans.html"} {
		target, err := policy.ParseURL(url)
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := engine.Decide(context.Background(), policy.Request{
			Target:    target,
			Crawler:   everyone,
			UserAgent: "ExampleBot/1.0",
		})
		if err != nil { // the destination is prohibited, or its name does not resolve
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: allow=%v, reason=%s, token=%s", target.Path, d.Allow, d.Reason, d.Token)
		if d.Reason == policy.ByRule {
			fmt.Printf(", line %d of %s: %s", d.Rule.Line, d.URL, d.Rule)
		}
		fmt.Println()
	}
	fmt.Println("fetches:", fetches)
	// Output:
	// /offers.html: allow=true, reason=no-match, token=ExampleBot
	// /private/plans.html: allow=false, reason=rule, token=ExampleBot, line 2 of https://shop.example/robots.txt: Disallow: /private/
	// fetches: 1
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Judge needs neither a network nor an Engine: it decides by an answer at hand.
// What an origin answers matters as much as what its file says.
func ExampleRobots_Judge() {
	target := policy.Target{Scheme: "https", Host: "shop.example", Path: "/private/press/kit.pdf"}
	rules := "User-agent: *\nDisallow: /private/\nAllow: /private/press/\n"

	for _, answer := range []struct {
		status int
		body   string
	}{
		{http.StatusOK, rules},
		{http.StatusNotFound, ""},
		{http.StatusServiceUnavailable, ""},
	} {
		d := settings.Judge(answer.status, []byte(answer.body), target, []string{"ExampleBot"})
		fmt.Println(answer.status, d.Allow, d.Reason, d.Robots.State)
	}
	// Output:
	// 200 true rule fresh
	// 404 true unavailable unavailable
	// 503 false unreachable unreachable
}
