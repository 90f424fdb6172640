package policy

import (
	"net/netip"
	"strings"
	"testing"

	"robotsgate/policy/glob"
	"robotsgate/policy/internal/origintest"
)

// TestIdentifyByLogin: a login has to match beside the other keys, and is compared only if
// they match.
func TestIdentifyByLogin(t *testing.T) {
	login := func(user, hash string) Login { return Login{User: user, Hash: hash} }
	inside := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	crawlers := Crawlers{
		Known: []*Crawler{
			{Name: "inside", Login: login("news", "1"), Sources: inside},
			{Name: "bot", Login: login("news", "1"), UserAgents: []glob.Glob{glob.Text("bot*")}},
			{Name: "other password", Login: login("news", "2")},
			{Name: "agent only", UserAgents: []glob.Glob{glob.Text("open*")}},
			{Name: "shadowed", Login: login("news", "2")},
		},
		Default: &Crawler{Name: "default"},
	}
	for _, c := range []struct {
		addr, agent string
		anyAgent    bool
		proves      string // the hash that its password has
		want        string
		asked       string // hashes that had to be compared
	}{
		{"10.1.1.1", "bot/1", false, "1", "inside", "1"},
		{"::ffff:10.1.1.1", "bot/1", false, "1", "inside", "1"},
		{"192.0.2.1", "bot/1", false, "1", "bot", "1"},
		{"192.0.2.1", "curl", false, "1", "default", "22"},
		{"192.0.2.1", "curl", false, "2", "other password", "2"},
		{"10.1.1.1", "bot/1", false, "2", "other password", "112"},
		{"192.0.2.1", "open/1", false, "3", "agent only", "2"},
		{"192.0.2.1", "", true, "1", "bot", "1"},
		{"192.0.2.1", "", true, "3", "agent only", "12"},
	} {
		asked := ""
		got := crawlers.Identify(Client{Addr: netip.MustParseAddr(c.addr), UserAgent: c.agent, AnyAgent: c.anyAgent, Proves: func(l *Login) bool {
			asked += l.Hash
			return l.Hash == c.proves
		}})
		if got.Name != c.want || asked != c.asked {
			t.Errorf("%+v: got %s by asking %q", c, got.Name, asked)
		}
	}
	if got := crawlers.Identify(Client{Addr: netip.MustParseAddr("10.1.1.1"), UserAgent: "bot/1"}); got.Name != "default" {
		t.Errorf("without a login: got %s", got.Name)
	}
}

// TestFetchAgent: a fetch has nothing that a client has sent, so that a client can't make an origin refuse it.
func TestFetchAgent(t *testing.T) {
	named, unnamed := &Crawler{Name: "named", Tokens: []string{"NewsBot", "Other"}}, &Crawler{Name: "unnamed"}
	for _, test := range []struct {
		crawler         *Crawler
		robots, product string
		want            string
	}{
		{crawler: named, product: "robotsgate/1.2", want: "NewsBot"},
		{crawler: unnamed, product: "robotsgate/1.2", want: "robotsgate/1.2"},
		{crawler: nil, product: "robotsgate/1.2", want: "robotsgate/1.2"},
		{crawler: nil, want: "robotsgate/0"},
		{crawler: named, robots: "Fetcher/1.0", product: "robotsgate/1.2", want: "Fetcher/1.0"},
		{crawler: nil, robots: "Fetcher/1.0", product: "robotsgate/1.2", want: "Fetcher/1.0"},
	} {
		for _, agent := range []string{"NewsBot/1.0 <script>", "", "sqlmap/1.0", strings.Repeat("x", 2000), "robotsgate/9.9"} {
			web, robots := newOrigins(), defaults()
			robots.UserAgent = test.robots
			web.Serve("https://example.com/robots.txt", raw("HTTP/1.1 302 Found\nLocation: https://b.example/robots.txt\n\n"))
			e := engineWith(t, Config{
				Crawlers: Crawlers{Known: []*Crawler{named, unnamed}}, Robots: robots, Agent: test.product, Usage: Usage{TDMRep: true}, Transport: web,
			})
			r := asks(t, "https://example.com/page", agent)
			r.Crawler = test.crawler
			if _, err := e.Decide(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			e.Close()
			if len(web.Requests) != 3 {
				t.Fatalf("%d fetches, want robots.txt, its redirect and tdmrep.json", len(web.Requests))
			}
			for _, sent := range web.Requests {
				if got := sent.Header.Get("User-Agent"); got != test.want {
					t.Errorf("%+v, client %.30q: %s was fetched with the User-Agent %q, want %q", test, agent, sent.URL, got, test.want)
				}
				if err := origintest.OnlyUserAgent(sent); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
