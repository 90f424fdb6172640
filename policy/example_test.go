package policy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// An Engine fetches an origin's robots.txt once and decides by it as long as it is valid.
func ExampleEngine_Decide() {
	fetches := 0
	origin := roundTrip(func(r *http.Request) (*http.Response, error) {
		fetches++
		return &http.Response{
			StatusCode: http.StatusOK,
			Body:       io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /private/\n")),
		}, nil
	})
	engine, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: origin})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	for _, url := range []string{"https://shop.example/offers.html", "https://shop.example/private/plans.html"} {
		target, err := canonical.ParseURL(url)
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := engine.Decide(context.Background(), policy.Request{Target: target, UserAgent: "ExampleBot/1.0"})
		if err != nil { // such as a host name that does not resolve: do not send the request
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: allow=%v, reason=%s, token=%s", target.Path, d.Allow, d.Reason, d.Token)
		if d.Reason == policy.ByRule {
			fmt.Printf(", line %d of %s: %s", d.Rule.Line, d.RobotsURL, d.Rule)
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

// Judge decides by an answer at hand, without a network or an Engine.
func ExampleRobots_Judge() {
	settings := policy.DefaultRobots()
	target := canonical.Target{Scheme: "https", Host: "shop.example", Path: "/private/press/kit.pdf"}
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
