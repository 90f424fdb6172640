package policy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// allowlistRobots is the robots.txt of every host in TestAllowlists.
const allowlistRobots = "User-agent: *\nDisallow: /private/\n"

// TestAllowlists: overrides that leave the decision to robots.txt, and overrides for some methods.
func TestAllowlists(t *testing.T) {
	// An override is written as "action hosts [paths] [methods] [@crawlers]", with commas within
	// each of them. A word with a slash or a star first is a path.
	for _, test := range []struct {
		overrides string // one a line
		ask       string // "[METHOD] [@crawler] URL", or "tunnel [@crawler] HOST"
		want      string
		readAs    string
	}{
		// Robots: the decision is robots.txt's own, with its reason.
		{"robots a; deny *", "a/x", "allow no-match fresh", ""},
		{"robots a; deny *", "a/private/x", "deny rule fresh", ""},
		{"robots a; deny *", "a/robots.txt", "allow implicit fresh", ""},
		{"robots a; deny *", "a:8080/x", "allow no-match fresh", ""},
		{"robots a; deny *", "b/x", "deny override", ""},
		{"robots a; deny *", "b/robots.txt", "deny override", ""},
		{"robots a; deny *", "x.a/x", "deny override", ""},
		{"robots *.a; deny *", "x.a/x", "allow no-match fresh", ""},
		{"robots *.a; deny *", "a/x", "deny override", ""},
		{"robots a,b; deny *", "b/private/x", "deny rule fresh", ""},
		{"robots a; allow *", "a/private/x", "deny rule fresh", ""},
		{"robots a; allow *", "b/private/x", "allow override", ""},
		{"allow a /private/; robots a; deny *", "a/private/x", "allow override", ""},
		{"deny a /x; robots a; deny *", "a/x", "deny override", ""},
		{"robots a", "a/x", "allow no-match fresh", ""},
		{"deny *; robots a", "a/x", "deny override", ""},

		// With paths.
		{"robots a /docs/; deny *", "a/docs/x", "allow no-match fresh", ""},
		{"robots a /docs/; deny *", "a/other", "deny override", ""},
		{"robots a /docs/; deny *", "a/docs", "deny override", ""},
		{"robots a /docs/; deny *", "a/robots.txt", "deny override", ""},
		{"robots a /docs/,/robots.txt$; deny *", "a/robots.txt", "allow implicit fresh", ""},
		{"robots a /private/; deny *", "a/private/x", "deny rule fresh", ""},
		{"robots a *.pdf$; deny *", "a/docs/x.pdf", "allow no-match fresh", ""},
		{"robots a *.pdf$; deny *", "a/docs/x.pdf?y", "deny override", ""},
		{"robots a /docs/; allow a", "a/private/x", "allow override", ""},
		{"robots a /private/; allow a", "a/private/x", "deny rule fresh", ""},

		// A path with several readings: all of them must be in the list.
		{"robots a /docs/; deny *", "a/docs//x", "allow no-match fresh", ""},
		{"robots a /docs/; deny *", "a//docs/x", "deny override", ""},
		{"robots a /docs/; deny *", "a/docs/..;/admin/x", "deny override", ""},
		{"robots a /docs/; deny *", "a/docs%2Fx", "deny override", ""},
		{"robots a /docs%2Fx; deny *", "a/docs%2fx", "allow no-match fresh", ""},
		{"robots a /docs/,/admin/; deny *", "a/docs/..;/admin/x", "allow no-match fresh", ""},
		{"robots a /docs/; robots a /admin/; deny *", "a/docs/..;/admin/x", "deny override", ""},
		{"robots a; deny *", "a//private/x", "deny rule fresh", "/private/x"},
		// One reading in the list keeps a later override from allowing the request.
		{"robots a /private/; allow a", "a//private/x", "deny rule fresh", "/private/x"},
		{"robots a /private/; allow a", "a/public/..;/private/x", "deny rule fresh", "/private/x"},
		{"robots a /docs/; allow a", "a/docs/..;/private/x", "deny rule fresh", "/private/x"},
		{"robots a /docs/; allow a; deny *", "a/docs/..;/other", "allow no-match fresh", ""},
		{"robots a /docs/; deny a /other", "a/docs/..;/other", "deny override", "/other"},

		// Methods.
		{"robots a GET,HEAD; deny *", "a/x", "allow no-match fresh", ""},
		{"robots a GET,HEAD; deny *", "HEAD a/x", "allow no-match fresh", ""},
		{"robots a GET,HEAD; deny *", "HEAD a/private/x", "deny rule fresh", ""},
		{"robots a GET,HEAD; deny *", "POST a/x", "deny override", ""},
		{"robots a GET,HEAD; deny *", "get a/x", "deny override", ""},
		{"robots a GET; deny *", "HEAD a/x", "deny override", ""},
		{"robots a GET,HEAD; robots a /api/ POST; deny *", "POST a/api/x", "allow no-match fresh", ""},
		{"robots a GET,HEAD; robots a /api/ POST; deny *", "POST a/other", "deny override", ""},
		{"robots a /api/ POST; deny *", "a/api/x", "deny override", ""},
		{"robots a POST; allow a", "POST a/private/x", "deny rule fresh", ""},
		{"robots a POST; allow a", "post a/private/x", "deny rule fresh", ""},
		{"robots a POST; allow a", "a/private/x", "allow override", ""},
		{"allow a GET", "a/private/x", "allow override", ""},
		{"allow a GET", "POST a/private/x", "deny rule fresh", ""},
		{"allow a GET", "get a/private/x", "deny rule fresh", ""},
		{"deny a POST,PUT", "POST a/x", "deny override", ""},
		{"deny a POST,PUT", "post a/x", "deny override", ""},
		{"deny a POST,PUT", "POSTS a/x", "allow no-match fresh", ""},
		{"deny a POST,PUT", "a/x", "allow no-match fresh", ""},
		{"deny a /form POST", "POST a/form", "deny override", ""},
		{"deny a /form POST", "POST a/%66orm", "deny override", ""},
		{"deny a /form POST", "POST a//form", "deny override", "/form"},
		{"deny a /form POST", "POST a/other", "allow no-match fresh", ""},
		{"deny a /form POST", "a/form", "allow no-match fresh", ""},
		{"deny * POST; allow a", "POST a/private/x", "deny override", ""},
		{"deny * POST; allow a", "a/private/x", "allow override", ""},

		// Crawlers and expiry.
		{"robots a @news; deny *", "@news a/x", "allow no-match fresh", ""},
		{"robots a @news; deny *", "a/x", "deny override", ""},
		{"robots a @news; deny *", "@other a/x", "deny override", ""},
		{"robots a GET @news; robots b @other; deny *", "POST @news a/x", "deny override", ""},
		{"robots a GET @news; robots b @other; deny *", "POST @other b/x", "allow no-match fresh", ""},
		{"robots a GET @news; robots b @other; deny *", "@other a/x", "deny override", ""},
		{"robots a; deny * @news", "@other b/x", "allow no-match fresh", ""},
		{"expired robots a; deny *", "a/x", "deny override", ""},
		{"expired deny *; robots a", "a/x", "allow no-match fresh", ""},
		{"lasting robots a; deny *", "a/x", "allow no-match fresh", ""},

		// Tunnels with requests that can't be seen: of any path and method.
		{"robots a; deny *", "tunnel a", "allow no-match fresh", ""},
		{"robots a; deny *", "tunnel b", "deny override", ""},
		{"robots a /; deny *", "tunnel a", "allow no-match fresh", ""},
		{"robots a /docs/; deny *", "tunnel a", "deny override", ""},
		{"robots a /$; deny *", "tunnel a", "deny override", ""},
		{"robots a GET,HEAD; deny *", "tunnel a", "deny override", ""},
		{"robots a / GET,HEAD; deny *", "tunnel a", "deny override", ""},
		{"robots a GET,HEAD", "tunnel a", "allow no-match fresh", ""},
		{"robots a @news; deny *", "tunnel @news a", "allow no-match fresh", ""},
		{"robots a @news; deny *", "tunnel a", "deny override", ""},
		{"robots closed; deny *", "tunnel closed", "deny rule fresh", ""},
		{"robots closed /x; allow closed", "tunnel closed", "deny rule fresh", ""},
		{"robots closed GET; allow closed", "tunnel closed", "deny rule fresh", ""},
		{"robots closed /x GET; allow *", "tunnel closed", "deny rule fresh", ""},
		{"robots a /x; allow *", "tunnel closed", "allow override", ""},
		{"allow closed GET", "tunnel closed", "deny rule fresh", ""},
		{"allow closed / GET", "tunnel closed", "deny rule fresh", ""},
		{"allow closed GET; allow closed", "tunnel closed", "allow override", ""},
		{"deny a POST", "tunnel a", "deny override", ""},
		{"deny a / POST", "tunnel a", "deny override", ""},
		{"deny a /$ POST", "tunnel a", "deny override", ""},
		{"deny a /form POST", "tunnel a", "allow no-match fresh", ""},
		{"deny * POST; robots a; deny *", "tunnel a", "deny override", ""},
		{"robots a; deny * POST", "tunnel a", "allow no-match fresh", ""},

		// Only an override for all paths allows a whole host. One for the root denies it.
		{"allow closed", "tunnel closed", "allow override", ""},
		{"allow closed /", "tunnel closed", "allow override", ""},
		{"allow closed /x,*", "tunnel closed", "allow override", ""},
		{"allow closed /*", "tunnel closed", "allow override", ""},
		{"allow closed /$", "tunnel closed", "deny rule fresh", ""},
		{"allow closed /api/", "tunnel closed", "deny rule fresh", ""},
		{"allow closed /*?*", "tunnel closed", "deny rule fresh", ""},
		{"deny open", "tunnel open", "deny override", ""},
		{"deny open /", "tunnel open", "deny override", ""},
		{"deny open /$", "tunnel open", "deny override", ""},
		{"deny open /api/", "tunnel open", "allow rule fresh", ""},
	} {
		t.Run(test.overrides+" | "+test.ask, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				for _, origin := range []string{"http://a", "http://a:8080", "http://b", "http://x.a"} {
					web.Serve(origin+"/robots.txt", rules(allowlistRobots))
				}
				web.Serve("http://closed/robots.txt", rules("User-agent: *\nDisallow: /\n"))
				web.Serve("http://open/robots.txt", rules("User-agent: *\nAllow: /\n"))
				c := Config{Overrides: writtenOverrides(t, test.overrides), Robots: defaults(), Transport: web}
				e := engineWith(t, c)
				decide, words := e.Decide, strings.Fields(test.ask)
				ask := asks(t, "http://"+words[len(words)-1], "Bot/1.0")
				for _, word := range words[:len(words)-1] {
					if name, ok := strings.CutPrefix(word, "@"); ok {
						ask.Crawler = &Crawler{Name: name, Mode: Enforce}
					} else if word == "tunnel" {
						decide, ask.whole, ask.Method = e.DecideHost, true, "CONNECT"
					} else {
						ask.Method = word
					}
				}
				d, err := decide(t.Context(), ask)
				if got := verdict(d, err); got != test.want || d.ReadAs != test.readAs {
					t.Errorf("got %s, read as %q; want %s, read as %q", got, d.ReadAs, test.want, test.readAs)
				}
				if (d.Note != "") != (d.Reason == ByOverride) || d.Reason == ByOverride && d.Left != "" {
					t.Errorf("%s with the note %q, left %q", d.Reason, d.Note, d.Left)
				}
				if denied := d.Reason == ByOverride; denied && len(web.Fetched()) > 0 {
					t.Errorf("an override decided, and %s was fetched", web.Fetched())
				}
				// The same request is decided in the same way from the evidence.
				if again, ok := again(c, ask, d); !ok || again.Allow != d.Allow || again.Reason != d.Reason || again.ReadAs != d.ReadAs || again.Left != d.Left {
					t.Errorf("again: %v %s, read as %q", again.Allow, again.Reason, again.ReadAs)
				}
			})
		})
	}
}

// writtenOverrides parses the overrides of TestAllowlists.
func writtenOverrides(t *testing.T, text string) (all []Override) {
	t.Helper()
	for i, line := range strings.Split(text, ";") {
		words := strings.Fields(line)
		o := Override{Reason: fmt.Sprint("number ", i)}
		switch words[0] {
		case "expired":
			o.Expires, words = time.Now(), words[1:]
		case "lasting":
			o.Expires, words = time.Now().Add(time.Hour), words[1:]
		}
		o.Action, o.Hosts = Action(words[0]), hosts(t, strings.Split(words[1], ",")...)
		for _, word := range words[2:] {
			list := strings.Split(word, ",")
			switch word[0] {
			case '/', '*':
				o.Paths = list
			case '@':
				o.Crawlers = strings.Split(word[1:], ",")
			default:
				o.Methods = list
			}
		}
		all = append(all, o)
	}
	return all
}
