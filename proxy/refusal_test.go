package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// The author of a robots.txt may want to harm a browser, a terminal or a header.
const hostileRobots = "User-agent: *\n" +
	"Disallow: /a\"><script>alert(1)</script>&amp;'x\n" +
	"Disallow: /b\x1b[31m\x9b\u202ered\n" +
	"Crawl-delay: 1\n"

// TestPolicy: a refusal by a rule, an override or a preference says in each form that it is no fault. Others do not.
func TestPolicy(t *testing.T) {
	const sentence = "This is policy and no fault: another route or another try will not help."
	override := func(c *policy.Config) {
		c.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: policy.Deny, Reason: "not for us"}}
	}
	for name, c := range map[string]struct {
		o    proxytest.Options
		path string
		want bool
	}{
		"a rule":      {path: "/private/x", want: true},
		"an override": {o: proxytest.Options{Engine: override}, path: "/x", want: true},
		"the guard":   {o: proxytest.Options{Egress: func(e *proxy.Egress) { e.Ports = []int{1} }}, path: "/x"},
		"a method":    {path: "/ok"},
	} {
		t.Run(name, func(t *testing.T) {
			g := proxytest.Start(t, c.o)
			method := http.MethodGet
			if name == "a method" {
				method = http.MethodTrace
			}
			for _, accept := range []string{"text/html", "text/plain", "application/json"} {
				if _, body := g.Do(method, g.HTTP+c.path, nil, "Accept", accept); strings.Contains(body, sentence) != c.want || !strings.Contains(body, "40") {
					t.Errorf("%s: %s", accept, body)
				}
			}
		})
	}
}

// TestGroupAsWritten: people read the group's name as the file writes it, programs in lower case.
func TestGroupAsWritten(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Robots: "User-agent: eXampleBot\nDisallow: /private/\n"})
	for accept, want := range map[string][]string{
		"text/html":        {"in the group for eXampleBot.", "<dt>Group</dt><dd>eXampleBot</dd>"},
		"text/plain":       {"in the group for eXampleBot.", "Group: eXampleBot\n"},
		"application/json": {"in the group for eXampleBot.", `"group": "examplebot"`},
	} {
		resp, body := g.Do(http.MethodGet, g.HTTP+"/private/x", nil, "Accept", accept)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `deny;reason=rule;token="ExampleBot";group="examplebot";line=2`)
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: no %q in:\n%s", accept, text, body)
			}
		}
	}
}

func TestForms(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Robots: hostileRobots})
	for _, c := range []struct {
		accept, contentType string
		want, not           []string
	}{
		{"text/html", "text/html; charset=utf-8",
			[]string{"<h1>403 Refused by robots rules</h1>",
				"line 2: <code>Disallow: /a&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;&#39;x</code>",
				"<dt>Product token</dt><dd>ExampleBot</dd>", "<dt>Reason</dt><dd>rule</dd>", "status 200)", "SHA-256</dt><dd><code>",
				`<meta name="robots" content="noindex">`, `<link rel="icon" href="data:,">`, `<meta name="color-scheme" content="light dark">`},
			[]string{"<script>"}},
		{"text/plain", "text/plain; charset=utf-8",
			[]string{"403 Refused by robots rules\n", "Rule: line 2: Disallow: /a\"><script>alert(1)</script>&amp;'x\n",
				"Product token: ExampleBot\n", "Group: *\n", "Crawl-delay: 1 s\n", "/robots.txt, fresh, fetched 2", "Reason: rule\n", " s ago\n",
				"Its status: 200\n", "Its SHA-256: "},
			nil},
		{"*/*", "application/problem+json", []string{`"status": 403`, `"type": "urn:robotsgate:rule"`}, nil},
	} {
		g.Ways(t, func(t *testing.T, v proxytest.Way) {
			path := "/a%22%3E%3Cscript%3Ealert(1)%3C/script%3E&amp;'x"
			resp, body := v.Get(t, path, "Accept", c.accept)
			proxytest.WantStatus(t, resp, 403)
			proxytest.WantHeader(t, resp, "Content-Type", c.contentType)
			proxytest.WantHeader(t, resp, "Content-Length", fmt.Sprint(len(body)))
			proxytest.WantHeader(t, resp, "Cache-Control", "no-store")
			proxytest.WantHeader(t, resp, "Vary", "Accept")
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=rule")
			for _, want := range append(c.want, strings.Trim(resp.Header.Get("Robots-Gate-Id"), `"`), v.Origin) {
				if !strings.Contains(body, want) {
					t.Errorf("%s: no %q in:\n%s", c.accept, want, body)
				}
			}
			for _, not := range c.not {
				if strings.Contains(body, not) {
					t.Errorf("%s: %q in:\n%s", c.accept, not, body)
				}
			}
			length := resp.ContentLength
			resp, body = proxytest.Send(t, v.Client, http.MethodHead, v.Origin+path, nil, "Accept", c.accept)
			proxytest.WantStatus(t, resp, 403)
			proxytest.WantHeader(t, resp, "Content-Type", c.contentType)
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=rule")
			if resp.ContentLength != length || body != "" {
				t.Errorf("HEAD: Content-Length %d, want %d; body %q", resp.ContentLength, length, body)
			}
		})
	}
	// No byte reaches a terminal that it would obey.
	for _, accept := range []string{"text/plain", "*/*", "text/html"} {
		resp, body := g.Get(g.HTTP+"/b%1b[31m%9b%e2%80%aered", "Accept", accept)
		proxytest.WantStatus(t, resp, 403)
		if i := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || strings.Contains(body, "\x9b") {
			t.Errorf("%s: at %d something that cannot be seen, or turns the line, in %q", accept, i, body)
		}
		if !strings.Contains(body, `\u202ered`) {
			t.Errorf("%s: the character is not shown escaped in %q", accept, body)
		}
		for name, values := range resp.Header {
			for _, v := range values {
				if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("%s: %q", name, v)
				}
			}
		}
	}
	proxytest.WantArrived(t, g)
}

func TestDenyStatus(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Engine: func(c *policy.Config) { c.Crawlers.Default.DenyStatus, c.Robots.UnreachableStatus = 451, 503 },
	})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, body := v.Get(t, "/private/")
		proxytest.WantStatus(t, resp, 451)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=rule")
		var doc struct{ Status int }
		if err := json.Unmarshal([]byte(body), &doc); err != nil || doc.Status != 451 {
			t.Errorf("body: %+v, %v", doc, err)
		}
		scheme, _, _ := strings.Cut(v.Origin, ":")
		resp, body = proxytest.Send(t, v.Client, http.MethodGet, scheme+"://127.0.0.1:1/", nil)
		proxytest.WantStatus(t, resp, 503)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
		proxytest.WantHeader(t, resp, "Proxy-Status", `robotsgate;error=http_request_denied;details="robots.txt unreachable: `)
		if resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil || doc.Status != 503 {
			t.Errorf("body: %+v, %v", doc, err)
		}
	})
}

// A refusal with Retry-After says when to try again in its detail, too: a model sees no header.
func TestTryAgain(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{RobotsTxt: func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "5400")
		rw.WriteHeader(http.StatusServiceUnavailable)
	}})
	for accept, wants := range map[string][]string{
		"text/html":        {" Try again in 1h30m.</p>", "unreachable, last tried 2", " ago, status 503)"},
		"text/plain":       {" Try again in 1h30m.\n", "unreachable, last tried 2", " ago\nIts status: 503\n"},
		"application/json": {` Try again in 1h30m."`},
	} {
		resp, body := g.Get(g.HTTP+"/page", "Accept", accept)
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantHeader(t, resp, "Retry-After", "5400")
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in:\n%s", accept, want, body)
			}
		}
	}
}

// The decision about a request that fails, or that the pace refuses, is not the reason of the answer, and people
// don't read it as one. In JSON its members stay.
func TestDecisionIsNotTheReason(t *testing.T) {
	const allowed, denied = "they allow this request (no-match)", "they would deny this request (rule), but are not enforced"
	for name, c := range map[string]struct {
		mode          policy.Mode
		path          string
		pace          pace.Config
		want          int
		rules, reason string
	}{
		"down":           {policy.Enforce, "/page", pace.Config{}, 502, allowed, "no-match"},
		"down, reported": {policy.Report, "/private/", pace.Config{}, 502, denied, "rule"},
		"budget":         {policy.Enforce, "/page", pace.Config{Budgets: []pace.Budget{{Hosts: []glob.Glob{glob.Text("*")}, Requests: 1, Window: time.Hour}}}, 429, allowed, "no-match"},
	} {
		t.Run(name, func(t *testing.T) {
			pacer := pace.New(c.pace, nil)
			defer pacer.Close()
			g := proxytest.Start(t, proxytest.Options{
				Handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
				Engine:  func(p *policy.Config) { p.Crawlers.Default.Mode = c.mode },
				Proxy:   func(o *proxy.Options) { o.Settings.Pacer = pacer },
			})
			g.Get(g.HTTP + c.path) // takes the budget
			for accept, want := range map[string]string{
				"text/html":        "<dt>Robots rules</dt><dd>" + c.rules + "</dd>",
				"text/plain":       "\nRobots rules: " + c.rules + "\n",
				"application/json": `"reason": "` + c.reason + `"`,
			} {
				resp, body := g.Get(g.HTTP+c.path, "Accept", accept)
				proxytest.WantStatus(t, resp, c.want)
				if !strings.Contains(body, want) || strings.Contains(body, "Reason") {
					t.Errorf("%s: no %q, or a reason, in:\n%s", accept, want, body)
				}
			}
		})
	}
}

// A certificate that is not trusted makes robots.txt unreachable, and after a
// decision costs a 502; either way the answer says what to do.
func TestUntrustedOrigin(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Egress: func(e *proxy.Egress) { e.Roots = nil }})
	resp, body := g.Get(g.HTTPS + "/")
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
	if !strings.Contains(body, "certificate") {
		t.Errorf("the refusal does not say why: %s", body)
	}
	g = proxytest.Start(t, proxytest.Options{Egress: func(e *proxy.Egress) { e.Roots = nil }, Engine: proxytest.AllowHost(t, "127.0.0.1")})
	resp, body = g.Get(g.HTTPS + "/")
	proxytest.WantStatus(t, resp, 502)
	proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=tls_certificate_error")
	if !strings.Contains(body, "egress.ca_file") {
		t.Errorf("the answer does not say what to do: %s", body)
	}
}
