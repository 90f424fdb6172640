package auditreport

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/field"
	"robotsgate/internal/gate"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// suggested returns what the options of audit make of entries, and the overrides in it, read as a part
// of a configuration with these crawlers. The command has the configuration c.
func suggested(t *testing.T, c *gate.Config, a Options, entries []audit.Entry, crawlers ...string) (text string, overrides []policy.Override) {
	t.Helper()
	var lines bytes.Buffer
	for i := range entries {
		r := &entries[i]
		r.Time, r.ID = time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), fmt.Sprint("ID", i)
		if err := console.JSON(&lines, r); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	compact := strings.ReplaceAll(lines.String(), "\n  ", "")
	if err := os.WriteFile(log, []byte(strings.ReplaceAll(compact, "\n}", "}")), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a.Suggest, a.File = true, []string{log}
	if a.Filter == nil {
		a.Filter = &audit.Filter{}
	}
	if err := Print(console.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard}, c, a); err != nil && err != console.Exit(1) {
		t.Fatal(err)
	}
	file := ""
	for i, name := range crawlers {
		if i == 0 {
			file = "crawlers:\n"
		}
		file += "- {name: " + field.Quote(name) + ", user_agents: [" + field.Quote("agent"+fmt.Sprint(i)) + "]}\n"
	}
	c, err := gate.ReadConfig("suggested.yaml", strings.NewReader(file+out.String()), os.LookupEnv)
	if err != nil {
		t.Fatalf("%v in\n%s%s", err, file, out.String())
	}
	return out.String(), c.Overrides
}

// permits says what overrides do with a request: "robots", "allow" or "deny".
func permits(t *testing.T, overrides []policy.Override, crawler, method, url string) string {
	t.Helper()
	target, err := canonical.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	d, decided := policy.Overridden(overrides, policy.Strict, policy.Request{Target: target, Method: method, Crawler: &policy.Crawler{Name: crawler}}, time.Now())
	switch {
	case !decided:
		return "robots"
	case d.Allow:
		return "allow"
	}
	return "deny"
}

// sent returns the entry of an allowed request of the default crawler.
func sent(method, url string) audit.Entry {
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	return audit.Entry{Crawler: "default", Method: method, Origin: scheme + "://" + host, Path: "/" + path, Decision: "allow", Reason: policy.NoMatch}
}

func TestSuggestOverrides(t *testing.T) {
	reported := sent("GET", "https://reported.example/x")
	reported.Decision, reported.Enforced, reported.Reason = "deny", new(false), policy.ByOverride
	byRule := sent("GET", "https://rule.example/x")
	byRule.Decision, byRule.Enforced, byRule.Reason = "deny", new(false), policy.ByRule
	refused := sent("GET", "https://refused.example/x")
	refused.Decision, refused.Reason = "deny", policy.ByOverride
	allowed := sent("GET", "https://partner.example/x")
	allowed.Reason = policy.ByOverride
	guarded := sent("GET", "http://10.0.0.1/x")
	guarded.Decision, guarded.Reason, guarded.Refused = "", "", "guard"
	tunnel := sent("CONNECT", "https://tunnel.example/")
	tunnel.Path, tunnel.Tunnel = "", true
	entries := []audit.Entry{
		sent("GET", "https://a.example/docs/x?y=1"), sent("GET", "https://b.example:8443/"), sent("HEAD", "http://c.example/x"),
		sent("GET", "https://api.example/v1/x"), sent("POST", "https://api.example/v1/x"), sent("GET", "https://[2001:db8::1]/x"),
		reported, byRule, refused, allowed, guarded, tunnel, sent("GET", "https://tunnel.example/x"), sent("get", "https://odd.example/x"),
	}
	text, overrides := suggested(t, gate.DefaultConfig(), Options{}, entries)
	want := `# These overrides permit again what the gate has sent: 10 requests, 2026-01-02 03:04:00 to 2026-01-02 03:04:12 UTC.
# Read them before you use them: every host that a client has asked for is here. Put them into the
# configuration, behind the overrides that it has, but before one that denies all.
# Still denied, by robots.txt or a usage preference: 1 request of these.
# Left out: 2 requests that the gate has refused, or that failed.
# Left out: 1 request that an override allows.
# Left out: 1 request with a method or URL that overrides can't name.
overrides:
- hosts:
  - "2001:db8::1"
  - "a.example"
  - "b.example"
  - "c.example"
  - "reported.example"
  - "rule.example"
  methods: ["GET", "HEAD"]
  action: robots
  reason: seen in the audit log
- hosts: ["api.example"]
  methods: ["GET", "HEAD", "POST"]
  action: robots
  reason: seen in the audit log
- hosts: ["tunnel.example"]
  action: robots
  reason: seen in the audit log
- hosts: ["*"]
  action: deny
  reason: not in the list
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for _, c := range []struct{ method, url, want string }{
		{"GET", "http://a.example/other", "robots"},
		{"POST", "https://a.example/docs/x", "deny"},
		{"POST", "https://api.example/", "robots"},
		{"PUT", "https://api.example/", "deny"},
		{"PUT", "https://tunnel.example/", "robots"},
		{"GET", "https://refused.example/x", "deny"},
		{"GET", "https://x.a.example/", "deny"},
	} {
		if got := permits(t, overrides, "default", c.method, c.url); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.url, got, c.want)
		}
	}
	// Whoever selects refused requests wants to permit some of them.
	if _, overrides := suggested(t, gate.DefaultConfig(), Options{Filters: Filters{Denied: true}, Filter: &audit.Filter{Denied: true}}, entries); permits(t, overrides, "default", "GET", "https://refused.example/x") != "robots" {
		t.Error("--denied does not include what an override has refused")
	}
}

// TestSuggestPermission: for one refused request the override is printed that would allow it, and nothing else, as a
// comment.
func TestSuggestPermission(t *testing.T) {
	for _, url := range []string{"https://shop.example/private/x", "https://shop.example:8443/a*b$?q=*&r=$1", "https://[2001:db8::1]/x?"} {
		r := sent("GET", url)
		r.Decision, r.Reason, r.Rule, r.Line = "deny", policy.ByRule, "Disallow: /", 2
		text, overrides := suggested(t, gate.DefaultConfig(), Options{}, []audit.Entry{r})
		if len(overrides) != 0 || !strings.Contains(text, "robots.txt line 2: Disallow: /") {
			t.Errorf("%s: got %d overrides in\n%s", url, len(overrides), text)
		}
		_, entry, _ := strings.Cut(text, "#\n")
		c, err := gate.ReadConfig("x.yaml", strings.NewReader(strings.ReplaceAll("\n"+entry, "\n# ", "\n")), os.LookupEnv)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", url, err, text)
		}
		overrides = c.Overrides
		for _, c := range []struct{ crawler, method, url, want string }{
			{"default", "GET", url, "allow"}, {"default", "HEAD", url, "allow"}, {"default", "POST", url, "robots"}, {"other", "GET", url, "robots"},
			{"default", "GET", url + "y", "robots"}, {"default", "GET", strings.Replace(url, "*b$", "xb", 1) + "z", "robots"}, {"default", "GET", "https://shop.example/", "robots"},
		} {
			if got := permits(t, overrides, c.crawler, c.method, c.url); got != c.want {
				t.Errorf("%s, %s %s: got %s, want %s by\n%s", c.crawler, c.method, c.url, got, c.want, text)
			}
		}
	}
	// No override allows this path in all its readings.
	unclear := sent("GET", "https://a.example/public/..;/private/x")
	unclear.Decision, unclear.Reason = "deny", policy.ByRule
	if text, _ := suggested(t, gate.DefaultConfig(), Options{}, []audit.Entry{unclear}); strings.Contains(text, "action: allow") {
		t.Errorf("got\n%s", text)
	}
}

func TestSuggestPaths(t *testing.T) {
	var entries []audit.Entry
	for _, path := range []string{"", "robots.txt", "docs/a/b", "docs/c", "find?q=1", "a*b", "price$", "docs//x", "public;v=1/x"} {
		entries = append(entries, sent("GET", "https://a.example/"+path))
	}
	entries = append(entries, sent("POST", "https://a.example/api/x"))
	unclear := sent("GET", "https://a.example/public/..;/private/x") // no pattern covers all that it may mean
	for i := range 30 {
		entries = append(entries, sent("GET", fmt.Sprintf("https://many.example/%d/x", i)))
	}
	text, overrides := suggested(t, gate.DefaultConfig(), Options{Paths: 1}, append(entries, unclear))
	for _, line := range []string{`  paths: ["/api/"]`, `  - "/$"`, `  - "/docs/"`, `  - "/find?"`, `  - "/a%2Ab$"`, `  - "/price%24$"`,
		"# 1 list of paths would be too long: all paths are permitted there.",
		"# Left out: 1 request with a method or URL that overrides can't name."} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
	for _, r := range entries {
		if got := permits(t, overrides, "default", r.Method, r.Origin+r.Path); got != "robots" {
			t.Errorf("%s %s%s, which was sent: %s", r.Method, r.Origin, r.Path, got)
		}
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/docs/other", "robots"}, {"GET", "/docs", "deny"}, {"GET", "/other", "deny"}, {"GET", "/axb", "deny"}, {"GET", "/a*bc", "deny"},
		{"GET", "/find?q=2", "robots"}, {"GET", "/find", "deny"}, {"GET", "/price", "deny"}, {"GET", "/private/x", "deny"}, {"GET", "/api/x", "deny"},
		{"POST", "/api/y", "robots"}, {"POST", "/docs/a/b", "deny"}, {"GET", "/docs/..;/admin", "deny"}, {"GET", unclear.Path, "deny"},
	} {
		if got := permits(t, overrides, "default", c.method, "https://a.example"+c.path); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

func TestSuggestCrawlers(t *testing.T) {
	one, two, both := sent("GET", "https://one.example/"), sent("GET", "https://two.example/"), sent("GET", "https://both.example/")
	one.Crawler, two.Crawler, both.Crawler = `co"der`, "news ${X}", `co"der`
	again := both
	again.Crawler = "news ${X}"
	text, overrides := suggested(t, gate.DefaultConfig(), Options{}, []audit.Entry{one, two, both, again}, `co"der`, "news ${X}")
	if strings.Count(text, "crawlers: ") != 3 || !strings.Contains(text, `["co\"der", "news $${X}"]`) {
		t.Errorf("got\n%s", text)
	}
	for _, c := range []struct{ crawler, host, want string }{
		{one.Crawler, "one", "robots"}, {one.Crawler, "two", "deny"}, {one.Crawler, "both", "robots"}, {two.Crawler, "both", "robots"}, {"default", "both", "deny"},
	} {
		if got := permits(t, overrides, c.crawler, "GET", "https://"+c.host+".example/"); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.crawler, c.host, got, c.want)
		}
	}
	// With the configuration, entries of crawlers that it does not have are left out.
	file := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(file, []byte("unknown_clients: refuse\ncrawlers: [{name: \"co\\\"der\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := gate.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	gone := sent("GET", "https://gone.example/")
	text, _ = suggested(t, c, Options{}, []audit.Entry{one, two, gone}, `co"der`)
	if !strings.Contains(text, "# Left out: 2 requests of crawlers that the configuration does not have.") || !strings.Contains(text, `  crawlers: ["co\"der"]`) {
		t.Errorf("got\n%s", text)
	}
}

// TestSuggestBounds: more hosts than can be listed are left out, and nothing is permitted if nothing
// was seen.
func TestSuggestBounds(t *testing.T) {
	var entries []audit.Entry
	for i := range 1100 {
		entries = append(entries, sent("GET", fmt.Sprintf("https://h%d.example/", i)))
	}
	text, overrides := suggested(t, gate.DefaultConfig(), Options{}, entries)
	if !strings.Contains(text, "# Left out: 100 requests to more hosts than can be listed.") || permits(t, overrides, "default", "GET", "https://h1099.example/") != "deny" {
		t.Errorf("got\n%s", text[:min(len(text), 1000)])
	}
	_, overrides = suggested(t, gate.DefaultConfig(), Options{}, []audit.Entry{sent("get", "https://odd.example/")})
	if len(overrides) != 1 || overrides[0].Action != policy.Deny {
		t.Errorf("nothing was seen, and the overrides are %+v", overrides)
	}
}

// FuzzSuggestOverrides: whatever is in a log, the overrides can be loaded. They permit every request
// that they count, and no other host, and with paths and methods no more than they say.
func FuzzSuggestOverrides(f *testing.F) {
	f.Add("https://a.example/docs/x", "GET", "default", byte(1))
	f.Add("https://*.example/x", "GET", "default", byte(0))
	f.Add("https://a.example\"]/x", "GET", "default", byte(0))
	f.Add("https://a.example/a*$?\"\n- hosts: ['*']", "POST", "a\n${X}\x00\u0085", byte(2))
	f.Add("https://[::1]/..;/x", "M-SEARCH", "x: y #", byte(1))
	f.Add("http://a/%2e%2e;/x//%5Cy", "NULL", "news", byte(9))
	f.Add("http://a", "CONNECT", "default", byte(1))
	f.Add("http://-", "GET", "default", byte(1))
	f.Add("http://a.--.example/x", "GET", "default", byte(1))
	f.Add("http://x.example", "GET", "default", byte(1)) // one of the other hosts
	f.Fuzz(func(t *testing.T, url, method, crawler string, depth byte) {
		r := sent(method, url)
		if _, rest, _ := strings.Cut(url, "://"); !strings.Contains(rest, "/") {
			r.Path = ""
		}
		r.Crawler = crawler
		var s audit.Suggestions
		s.Depth = int(depth % 4)
		s.Entry(&r)
		var out bytes.Buffer
		if err := printReport(&out, "overrides", suggestion{&s, s.Overrides()}); err != nil {
			t.Fatal(err)
		}
		name := strings.ToValidUTF8(crawler, "\ufffd")
		file := "crawlers:\n- {name: " + field.Quote(cmp.Or(name, "x")) + "}\n" + out.String()
		c, err := gate.ReadConfig("x.yaml", strings.NewReader(file), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		overrides := c.Overrides
		if last := overrides[len(overrides)-1]; last.Action != policy.Deny || len(overrides) != 1+s.Requests {
			t.Fatalf("%d requests became\n%s", s.Requests, out.String())
		}
		for _, other := range []string{"another.invalid", "x.example"} {
			if !strings.Contains(r.Origin, other) && permits(t, overrides, name, "GET", "https://"+other+"/x") != "deny" {
				t.Errorf("another host is permitted by\n%s", out.String())
			}
		}
		if s.Requests == 0 {
			return
		}
		if got := permits(t, overrides, name, r.Method, r.Origin+r.Path); got != "robots" {
			t.Errorf("%s %s%s, which was sent: %s by\n%s", r.Method, r.Origin, r.Path, got, out.String())
		}
		if r.Path == "" {
			return
		}
		if other := "OTHER"; method != other && permits(t, overrides, name, other, r.Origin+r.Path) != "deny" {
			t.Errorf("another method is permitted by\n%s", out.String())
		}
		if s.Depth > 0 && !slices.Contains([]string{"/zzz", "/zzz/"}, r.Path) && !strings.HasPrefix(r.Path, "/zzz/") && permits(t, overrides, name, r.Method, r.Origin+"/zzz/y") != "deny" {
			t.Errorf("another path is permitted by\n%s", out.String())
		}
	})
}
