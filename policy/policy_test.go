package policy

import (
	"encoding/json"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
	"robotsgate/policy/internal/origintest"
	"robotsgate/policy/snapshot"
)

// hosts compiles host globs.
func hosts(t *testing.T, patterns ...string) (globs []glob.Glob) {
	t.Helper()
	for _, p := range patterns {
		g, err := glob.Host(p)
		if err != nil {
			t.Fatal(err)
		}
		globs = append(globs, g)
	}
	return globs
}

func TestOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve("https://a.example/robots.txt", rules("User-agent: *\nDisallow: /private/\n"))
		e := engineFor(t, defaults(), web, io.Discard)
		e.config.Overrides = []Override{
			{Hosts: hosts(t, "expired.example"), Action: Allow, Reason: "expired", Expires: time.Now()},
			{Hosts: hosts(t, "soon.example"), Action: Allow, Reason: "soon", Expires: time.Now().Add(time.Hour)},
			{Hosts: hosts(t, "a.example"), Paths: []string{"/private/open/", "*.pdf$"}, Action: Allow, Reason: "paths"},
			{Hosts: hosts(t, "a.example"), Crawlers: []string{"chosen", "other"}, Action: Allow, Reason: "crawler"},
			{Hosts: hosts(t, "*.partner.example"), Action: Allow, Reason: "below"},
			{Hosts: hosts(t, "*.partner.example", "partner.example"), Reason: "never reached below"},
			{Hosts: hosts(t, "192.0.2.1", "2001:db8::1"), Reason: "addresses"},
		}
		chosen := &Crawler{Name: "chosen", Mode: Enforce}
		for _, test := range []struct {
			url     string
			crawler *Crawler
			want    string
			note    string
		}{
			{"https://a.example/private/", nil, "deny rule fresh", ""},
			{"https://a.example/private/open/x", nil, "allow override", "paths"},
			{"https://a.example/private/open", nil, "deny rule fresh", ""},
			{"https://a.example/private/x.pdf", nil, "allow override", "paths"},
			{"https://a.example/private/x.pdf?y", nil, "deny rule fresh", ""},
			{"https://a.example/private/%6Fpen/", nil, "allow override", "paths"},
			{"https://a.example/private/", chosen, "allow override", "crawler"},
			{"http://A.example.:8080/private/", chosen, "allow override", "crawler"},
			{"https://x.partner.example/", nil, "allow override", "below"},
			{"https://x.y.partner.example/", nil, "allow override", "below"},
			{"https://partner.example/", nil, "deny override", "never reached below"},
			{"https://partner.example/robots.txt", nil, "deny override", "never reached below"},
			{"https://notpartner.example/", nil, "allow unavailable unavailable", ""},
			{"https://192.0.2.1/", nil, "deny override", "addresses"},
			{"https://[2001:DB8::1]:8443/", nil, "deny override", "addresses"},
			{"https://expired.example/", nil, "allow unavailable unavailable", ""},
			{"https://soon.example/", nil, "allow override", "soon"},
		} {
			r := asks(t, test.url, "Bot/1.0")
			if test.crawler != nil {
				r.Crawler = test.crawler
			}
			d, err := e.Decide(t.Context(), r)
			if got := verdict(d, err); got != test.want || d.Note != test.note {
				t.Errorf("%s: got %q, %q, want %q, %q", test.url, got, d.Note, test.want, test.note)
			}
			if d.Reason == ByOverride && (d.Robots != nil || d.RobotsURL != "" || d.Token != "Bot") {
				t.Errorf("%s: an override with %+v", test.url, d)
			}
		}
		// Overrides come before robots.txt, which is not fetched.
		for _, url := range web.Fetched() {
			if strings.Contains(url, "partner.example/") && !strings.Contains(url, "notpartner") || strings.Contains(url, "soon") {
				t.Errorf("fetched %s", url)
			}
		}
		// Expiry is checked for every request.
		time.Sleep(time.Hour - time.Nanosecond) // fake clock
		if got, want := verdict(e.Decide(t.Context(), asks(t, "https://soon.example/", ""))), "allow override"; got != want {
			t.Errorf("just before its end: got %q, want %q", got, want)
		}
		time.Sleep(time.Nanosecond) // fake clock
		if got, want := verdict(e.Decide(t.Context(), asks(t, "https://soon.example/", ""))), "allow unavailable unavailable"; got != want {
			t.Errorf("at its end: got %q, want %q", got, want)
		}
		// A whole host: an override of some paths does not decide about it.
		if got, want := verdict(e.DecideHost(t.Context(), asks(t, "https://a.example/private/open/", "Bot/1.0"))), "allow no-match fresh"; got != want {
			t.Errorf("host: got %q, want %q", got, want)
		}
		if got, want := verdict(e.DecideHost(t.Context(), asks(t, "https://partner.example/", "Bot/1.0"))), "deny override"; got != want {
			t.Errorf("host: got %q, want %q", got, want)
		}
	})
}

func TestReportMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: *\nDisallow: /private/\n"))
		web.Serve("https://dead.example/robots.txt", origintest.Failures["refused"])
		e := engineFor(t, defaults(), web, io.Discard)
		e.config.Overrides = []Override{{Hosts: hosts(t, "denied.example"), Reason: "no"}}
		for _, url := range []string{"https://example.com/private/", "https://dead.example/", "https://denied.example/"} {
			for _, mode := range []Mode{Enforce, Report} {
				r := asks(t, url, "Bot/1.0")
				r.Crawler.Mode = mode
				d, err := e.Decide(t.Context(), r)
				if err != nil || d.Allow || d.Enforced != (mode == Enforce) || d.Denied() != d.Enforced || d.Crawler != r.Crawler {
					t.Errorf("%s, %s: got %+v, %v", url, mode, d, err)
				}
			}
		}
	})
}

func TestIdentify(t *testing.T) {
	named := func(name string) *Crawler { return &Crawler{Name: name} }
	both, source, agent, six := named("both"), named("source"), named("agent"), named("six")
	both.Sources = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")}
	both.UserAgents = []glob.Glob{glob.Text("*bot/1*"), glob.Text("*spider*")}
	source.Sources = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	agent.UserAgents = []glob.Glob{glob.Text("*bot*")}
	six.Sources = []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}
	crawlers := Crawlers{Known: []*Crawler{both, source, agent, six}, Default: named("default")}
	for _, test := range []struct{ client, userAgent, want string }{
		{"10.1.0.1", "ExampleBot/1.0", "both"},
		{"10.2.0.1", "EXAMPLEBOT/1.0", "both"},
		{"::ffff:10.1.0.1", "A Spider", "both"},
		{"10.1.0.1", "ExampleBot/2.0", "source"},
		{"10.3.0.1", "ExampleBot/1.0", "source"},
		{"192.0.2.1", "ExampleBot/1.0", "agent"},
		{"2001:db8::1", "curl/8", "six"},
		{"2001:db8::1", "robot", "agent"}, // the first match wins
		{"192.0.2.1", "curl/8", "default"},
		{"192.0.2.1", "", "default"},
		{"", "ExampleBot/1.0", "agent"},
		{"", "", "default"},
	} {
		var client netip.Addr
		if test.client != "" {
			client = netip.MustParseAddr(test.client)
		}
		if got := crawlers.Identify(Client{Addr: client, UserAgent: test.userAgent}).Name; got != test.want {
			t.Errorf("%s, %q: got %s, want %s", test.client, test.userAgent, got, test.want)
		}
	}
}

// TestSeveralTokens: the first token that has a group is obeyed.
func TestSeveralTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: second\nDisallow: /2/\nCrawl-delay: 7\nUser-agent: third\nUser-agent: *\nDisallow: /\n"))
		e := engineFor(t, defaults(), web, io.Discard)
		r := asks(t, "https://example.com/2/", "Unrelated/1.0")
		r.Crawler.Tokens = []string{"First", "Second", "Third"}
		d, err := e.Decide(t.Context(), r)
		if got := verdict(d, err); got != "deny rule fresh" || d.Token != "Second" || d.Group.Name() != "second" || d.Rule.Line != 2 {
			t.Errorf("got %q, token %s, group %s, line %d", got, d.Token, d.Group.Name(), d.Rule.Line)
		}
		r.Crawler.Tokens = []string{"First"}
		if d, err := e.Decide(t.Context(), r); err != nil || d.Token != "First" || d.Group.Name() != "*" {
			t.Errorf("got token %s, group %s, %v", d.Token, d.Group.Name(), err)
		}
	})
}

func TestJudge(t *testing.T) {
	const body = "User-agent: *\nDisallow: /private/\n"
	for _, test := range []struct {
		status int
		path   string
		want   string
	}{
		{200, "/private/", "deny rule fresh"},
		{200, "/public", "allow no-match fresh"},
		{204, "/private/", "deny rule fresh"},            // the body that was given counts
		{206, "/public", "deny unreachable unreachable"}, // a part that was not asked for
		{206, "/robots.txt", "allow implicit unreachable"},
		{404, "/private/", "allow unavailable unavailable"},
		{403, "/private/", "allow unavailable unavailable"},
		{429, "/private/", "deny unreachable unreachable"},
		{500, "/public", "deny unreachable unreachable"},
		{503, "/robots.txt", "allow implicit unreachable"},
		{301, "/public", "deny unreachable unreachable"},
		{0, "/public", "deny unreachable unreachable"},
	} {
		r := defaults()
		d := r.Judge(test.status, []byte(body), canonical.Target{Path: test.path}, []string{"Bot"})
		if got := verdict(d, nil); got != test.want || d.Token != "Bot" || !d.Enforced || d.Robots.Snapshot.Status != test.status {
			t.Errorf("%d %s: got %q, %+v, want %q", test.status, test.path, got, d, test.want)
		}
	}
	r := defaults()
	r.MaxBytes = 20
	if d := r.Judge(200, []byte(body), canonical.Target{Path: "/private/"}, nil); !d.Allow || !d.Robots.Snapshot.Cut || d.Robots.Snapshot.SHA256 != snapshot.Digest("User-agent: *\n") {
		t.Errorf("past the limit: got %+v, %+v", d, d.Robots.Snapshot)
	}
}

// TestExplain: refusals, the API and check print these members.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: examplebot\nCrawl-delay: 1.5\nDisallow: /private/\n"))
		web.Serve("https://dead.example/robots.txt", raw("HTTP/1.1 503 Oops\n\n"))
		e := engineFor(t, defaults(), web, io.Discard)
		e.config.Overrides = []Override{{Hosts: hosts(t, "denied.example"), Reason: "contract 2026-17"}}
		e.Decide(t.Context(), asks(t, "https://example.com/", "ExampleBot/1.0"))
		e.Decide(t.Context(), asks(t, "https://dead.example/", "ExampleBot/1.0"))
		time.Sleep(3500 * time.Millisecond) // fake clock
		for _, test := range []struct {
			url  string
			mode Mode
			want string
		}{
			{"https://example.com/private/", Enforce, `{"allowed":false,"url":"https://example.com/private/","product_token":"ExampleBot","reason":"rule",` +
				`"rule":{"line":3,"text":"Disallow: /private/"},"group":"examplebot","robots":{"url":"https://example.com/robots.txt","status":200,"state":"fresh",` +
				`"fetched":"2000-01-01T00:00:00Z","age":3,"sha256":"` + snapshot.Digest("User-agent: examplebot\nCrawl-delay: 1.5\nDisallow: /private/\n") + `"},"crawl_delay":1.5}`},
			{"https://example.com/", Enforce, `{"allowed":true,"url":"https://example.com/","product_token":"ExampleBot","reason":"no-match",` +
				`"group":"examplebot","robots":{"url":"https://example.com/robots.txt","status":200,"state":"fresh",` +
				`"fetched":"2000-01-01T00:00:00Z","age":3,"sha256":"` + snapshot.Digest("User-agent: examplebot\nCrawl-delay: 1.5\nDisallow: /private/\n") + `"},"crawl_delay":1.5}`},
			{"https://dead.example/", Report, `{"allowed":false,"enforced":false,"url":"https://dead.example/","product_token":"ExampleBot","reason":"unreachable",` +
				`"robots":{"url":"https://dead.example/robots.txt","status":503,"state":"unreachable","fetched":"2000-01-01T00:00:00Z","age":3,"error":"the origin answered 503"}}`},
			{"https://denied.example/", Enforce, `{"allowed":false,"url":"https://denied.example/","product_token":"ExampleBot","reason":"override","note":"contract 2026-17"}`},
		} {
			r := asks(t, test.url, "ExampleBot/1.0")
			r.Crawler.Mode = test.mode
			d, err := e.Decide(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(d.Explain(test.url))
			if string(got) != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", test.url, got, test.want)
			}
		}
	})
}

// TestForeignProductToken: one warning for a crawler that obeys a token which it does not send.
func TestForeignProductToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: *\nDisallow: /x\n"))
		var log strings.Builder
		e := engineFor(t, defaults(), web, &log)
		for _, test := range []struct {
			name, agent string
			want        int // warnings so far
		}{
			{"mine", "Mozilla/5.0 (compatible; examplebot/2.0)", 0},
			{"foreign", "curl/8", 1},
			{"foreign", "curl/8", 1},
			{"other", "wget/1", 2},
		} {
			r := asks(t, "https://example.com/", test.agent)
			r.Crawler.Name, r.Crawler.Tokens = test.name, []string{"Unsent", "ExampleBot"}
			if _, err := e.Decide(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(log.String(), "does not have the product token"); got != test.want {
				t.Errorf("%s: %d warnings, want %d", test.name, got, test.want)
			}
		}
	})
}
