package gate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func warnings(c *Config) string {
	var lines []string
	for _, m := range c.Warnings() {
		lines = append(lines, m.String())
	}
	return strings.Join(lines, "\n")
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"the default", "", ""},
		{"open to all", "mode: report\nlisten: 0.0.0.0:9309", "test.yaml:2: listen: 0.0.0.0:9309 is reachable from other machines"},
		{"open to all, by no host", `listen: ":9309"`, "open proxy"},
		{"open on IPv6", `listen: "[::]:9309"`, "open proxy"},
		{"open on a name", "listen: gate.example:9309", "open proxy"},
		{"loopback IPv6", `listen: "[::1]:9309"`, ""},
		{"loopback name", "listen: localhost:9309", ""},
		{"another loopback address", "listen: 127.0.0.2:9309", ""},
		{"unknown clients may", "listen: 10.0.0.1:9309\ncrawlers: [{name: a, sources: [10.0.0.0/8]}]", "open proxy"},
		{"redirected from other machines", "listen_transparent: \"[::]:9311\"", "test.yaml:1: listen_transparent: [::]:9311 is reachable from other machines"},
		{"redirected on this machine", "listen_transparent: 127.0.0.1:9311", ""},
		{"redirected from known clients", "listen_transparent: \"[::]:9311\"\ncrawlers: [{name: a, sources: [10.0.0.0/8]}]\nunknown_clients: refuse", ""},
		{"redirected, and only logins", "listen_transparent: \"[::]:9311\"\ncrawlers:\n- name: a\n  login: {user: u, password_bcrypt: $2y$04$oaPq40YE8psIiR7NWW73T.nzAHGU99Ynf8Zxw7jjB8MB9dzzIGrYO}\nunknown_clients: refuse", "test.yaml:1: listen_transparent: every crawler needs a login"},
		{"digits", "crawlers:\n  - name: a\n    product_tokens:\n      - Bot\n      - Bot2", "test.yaml:5: crawlers.product_tokens: Bot2 has a digit"},
		{"redirects", "robots:\n  max_redirects: 4", "test.yaml:2: robots.max_redirects: 4: RFC 9309"},
		{"never reached", "crawlers:\n  - name: all\n  - name: b\n    sources: [10.0.0.0/8]", "test.yaml:3: crawlers.name: b is never reached: all, before it"},
		{"the same login", "crawlers:\n  - name: a\n    login: &one {user: u, password_bcrypt: $2y$04$oaPq40YE8psIiR7NWW73T.nzAHGU99Ynf8Zxw7jjB8MB9dzzIGrYO}\n  - name: b\n    login: *one\n    sources: [10.0.0.0/8]", "test.yaml:4: crawlers.name: b is never reached: a, before it"},
		{"one login, two agents", "crawlers:\n  - name: a\n    login: &one {user: u, password_bcrypt: $2y$04$oaPq40YE8psIiR7NWW73T.nzAHGU99Ynf8Zxw7jjB8MB9dzzIGrYO}\n    user_agents: [a]\n  - name: b\n    login: *one\n    user_agents: [b]", ""},
		{"another password", "crawlers:\n  - name: a\n    login: {user: u, password_bcrypt: $2y$04$oaPq40YE8psIiR7NWW73T.nzAHGU99Ynf8Zxw7jjB8MB9dzzIGrYO}\n  - name: b\n    login: {user: u, password_bcrypt: $2y$04$eEsOJWFlwbuGngOB1H3rdODCpD3CqxIpVGEFANDM2Ezt5pVNeHCsi}", ""},
		{"a part of its sources", "crawlers:\n  - {name: a, sources: [10.0.0.0/8], user_agents: [x, Y]}\n  - {name: b, sources: [10.1.0.0/16], user_agents: [y]}", "test.yaml:3: crawlers.name: b is never reached: a"},
		{"more than its sources", "crawlers:\n  - {name: a, sources: [10.0.0.0/8]}\n  - {name: b, sources: [10.1.0.0/16, 11.0.0.0/8]}\n  - {name: c, user_agents: [x]}", ""},
		{"any agent", "crawlers:\n  - {name: a, user_agents: ['*']}\n  - {name: b}", "test.yaml:3: crawlers.name: b is never reached: a"},
		{"paths of an unseen host", "https: {passthrough: [\"*.bank.example\"]}\noverrides:\n  - hosts: [shop.example, www.bank.example]\n    paths: [/api/]\n    action: deny\n    reason: r", "test.yaml:4: overrides.paths: https to www.bank.example is passed through unseen"},
		{"paths of unseen hosts", "https: {passthrough: [\"*.bank.example\"]}\noverrides: [{hosts: [\"*.bank.example\"], paths: [/a], action: deny, reason: r}]", "unseen"},
		{"paths where nothing is seen", "https: {intercept: false}\noverrides: [{hosts: [\"*\"], paths: [/a], action: deny, reason: r}]", "unseen"},
		{"all paths of unseen hosts", "https: {intercept: false}\noverrides: [{hosts: [\"*\"], paths: [/a, /], action: deny, reason: r}]", ""},
		{"an unseen host", "https: {passthrough: [\"*.bank.example\"]}\noverrides: [{hosts: [www.bank.example], action: deny, reason: r}]", ""},
		{"paths of other hosts", "https: {passthrough: [www.bank.example]}\noverrides: [{hosts: [\"*\", \"*.bank.example\", bank.example], paths: [/a], action: deny, reason: r}]", ""},
		{"methods of an unseen host", "https: {passthrough: [www.bank.example]}\noverrides:\n  - hosts: [www.bank.example]\n    methods: [GET]\n    action: allow\n    reason: r", "test.yaml:4: overrides.methods: https to www.bank.example is passed through unseen, where an override for some methods does not count"},
		{"denied methods of an unseen host", "https: {passthrough: [www.bank.example]}\noverrides:\n  - hosts: [www.bank.example]\n    methods: [POST]\n    action: deny\n    reason: r", "test.yaml:4: overrides.methods: https to www.bank.example is passed through unseen, so that an override that denies some methods refuses all of it"},
		{"methods of other hosts", "https: {passthrough: [www.bank.example]}\noverrides: [{hosts: [bank.example], methods: [POST], action: deny, reason: r}]", ""},
		{"robots without a denial", "overrides:\n  - hosts: [a]\n    action: robots\n    reason: r\n  - {hosts: [b], action: robots, reason: r}", "test.yaml:3: overrides.action: robots changes nothing here"},
		{"robots before a denial", "overrides:\n  - {hosts: [a], action: robots, reason: r}\n  - {hosts: [\"*\"], action: deny, reason: r}", ""},
		{"after a denial of all", "overrides:\n  - {hosts: [\"*\"], paths: [/], action: deny, reason: r}\n  - hosts: [a]\n    action: robots\n    reason: r\n  - {hosts: [b], action: deny, reason: r}", "test.yaml:3: overrides.hosts: never reached: the override of line 2, before it, is for all requests"},
		{"after a denial of some", "overrides:\n  - {hosts: [\"*\"], paths: [/a], action: deny, reason: r}\n  - {hosts: [\"*\"], methods: [PUT], action: deny, reason: r}\n  - {hosts: [\"*\"], crawlers: [default], action: deny, reason: r}\n  - {hosts: [\"*\"], expires: 2999-01-01, action: deny, reason: r}\n  - {hosts: [b], action: deny, reason: r}", ""},
		{"refuse without purposes", "crawlers: [{name: a, sources: [10.0.0.0/8]}]\nusage:\n  reserved: refuse", "test.yaml:3: usage.reserved: refuse refuses nothing, since no crawler has purposes"},
		{"refuse with purposes", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage:\n  reserved: refuse", ""},
		{"purposes alone", "crawlers:\n- name: b\n  sources: [11.0.0.0/8]\n- name: a\n  sources: [10.0.0.0/8]\n  purposes: [search]", "test.yaml:6: crawlers.purposes: nothing is refused by them unless usage.reserved is refuse"},
		{"purposes, and to annotate is meant", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: annotate}", ""},
		{"refuse without pages", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: refuse}\ntags:\n  html: false", "test.yaml:4: tags.html: false: the preferences in pages are not known"},
		{"refuse without interception", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: refuse}\nhttps:\n  intercept: false", "test.yaml:4: https.intercept: https responses are not seen"},
		{"refuse with all passed through", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: refuse}\nhttps:\n  passthrough: [\"*\"]", "test.yaml:4: https.passthrough: https responses are not seen"},
		{"refuse with some passed through", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: refuse}\nhttps: {passthrough: [a.example]}", ""},
		{"annotate without interception", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: annotate}\nhttps: {intercept: false}", ""},
		{"too few places", "crawlers: [{name: a, sources: [10.0.0.0/8]}, {name: b, sources: [11.0.0.0/8]}]\npace:\n  min_delay: 1s\n  max_queue: 2", "test.yaml:4: pace.max_queue: 2: there are 3 crawlers"},
		{"a place for each", "crawlers: [{name: a, sources: [10.0.0.0/8]}, {name: b, sources: [11.0.0.0/8]}]\nunknown_clients: refuse\npace: {min_delay: 1s, max_queue: 2}", ""},
		{"too few places without a pace", "crawlers: [{name: a, sources: [10.0.0.0/8]}]\npace: {max_queue: 1}", ""},
		{"all last", "crawlers:\n  - name: b\n    sources: [10.0.0.0/8]\n  - name: all", ""},
	} {
		got := warnings(parse(t, c.text))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestOpenProxyOnceClientsAreRefused: the gate is no open proxy if every crawler has a
// login or sources. A User-Agent does not count, since any client can send it.
func TestOpenProxyOnceClientsAreRefused(t *testing.T) {
	c := parse(t, "listen: 10.0.0.1:9309\ncrawlers: [{name: a, sources: [10.0.0.0/8]}]")
	c.UnknownClients = RefuseClients
	if got := warnings(c); got != "" {
		t.Errorf("sources: %s", got)
	}
	c = parse(t, "unknown_clients: refuse\nlisten: 10.0.0.1:9309\ncrawlers: [{name: a, login: {user: u, password_bcrypt: $2y$04$oaPq40YE8psIiR7NWW73T.nzAHGU99Ynf8Zxw7jjB8MB9dzzIGrYO}}]")
	if got := warnings(c); got != "" {
		t.Errorf("logins: %s", got)
	}
	c = parse(t, "listen: 10.0.0.1:9309\ncrawlers: [{name: a, user_agents: [x]}, {name: b, sources: [0.0.0.0/0]}]")
	c.UnknownClients = RefuseClients
	if got := warnings(c); !strings.Contains(got, "open proxy") {
		t.Errorf("what a client says of itself: %q", got)
	}
}

func TestExpiredOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock starts in the year 2000
		c := parse(t, "overrides:\n  - {hosts: [a], action: deny, reason: r,\n     expires: 2000-01-02}")
		if got := warnings(c); got != "" {
			t.Errorf("before: %s", got)
		}
		time.Sleep(48 * time.Hour)
		if got := warnings(c); !strings.HasPrefix(got, "test.yaml:3: overrides.expires: expired at 2000-01-03T00:00:00Z") {
			t.Errorf("after: %q", got)
		}
	})
}

func TestSetListen(t *testing.T) {
	c := parse(t, "listen: 127.0.0.1:1")
	if err := c.SetListen("127.0.0.1"); err == nil || c.Listen != "127.0.0.1:1" {
		t.Errorf("no port: %v", err)
	}
	if err := c.SetListen("0.0.0.0:0"); err != nil || c.Listen != "0.0.0.0:0" {
		t.Errorf("%v", err)
	}
	if got := warnings(c); !strings.HasPrefix(got, "test.yaml: listen: 0.0.0.0:0 is reachable") {
		t.Errorf("the line of another address is named: %q", got)
	}
	c = DefaultConfig()
	if err := c.SetListen(":1"); err != nil || !strings.HasPrefix(warnings(c), "listen: :1 is reachable") {
		t.Errorf("without a file: %v, %q", err, warnings(c))
	}
}
