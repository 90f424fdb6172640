package policy

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

const readingsRobots = `HTTP/1.1 200 OK

User-agent: *
Disallow: /private/
Allow: /private%2Fopen
Allow: /*;public
Disallow: /*?session=
Allow: /open%3Fsession=
Disallow: /*sort=a,b
Disallow: /*id=%281%29
Allow: /d;v=1/
`

// TestReadings: a path that servers may read as a disallowed one is denied, unless an Allow rule is
// written for its very spelling.
func TestReadings(t *testing.T) {
	override := func(action Action, paths ...string) []Override {
		return []Override{{Hosts: hosts(t, "a.example"), Paths: paths, Action: action, Reason: "agreed"}}
	}
	for _, test := range []struct {
		name      string
		overrides []Override
		readings  Readings
		path      string
		want      string
		readAs    string
	}{
		{name: "an ordinary path", path: "/public/x", want: "allow no-match fresh"},
		{name: "an ordinary path, denied", path: "/private/x", want: "deny rule fresh"},
		{name: "merged slashes", path: "//private/x", want: "deny rule fresh", readAs: "/private/x"},
		{name: "an encoded slash and a query", path: "/private%2fx?a=//b", want: "deny rule fresh", readAs: "/private/x?a=//b"},
		{name: "a parameter", path: "/private;v=1/x", want: "deny rule fresh", readAs: "/private/x"},
		{name: "an encoded question mark", path: "/q%3Fsession=1", want: "deny rule fresh", readAs: "/q?session=1"},
		{name: "an encoded question mark and a query", path: "/q%3fsession%3D1?a=1", want: "deny rule fresh", readAs: "/q?session=1&a=1"},
		{name: "an encoded question mark, harmless", path: "/q%3Fa=1?b=session", want: "allow no-match fresh"},
		{name: "an Allow for an encoded question mark", path: "/open%3Fsession=1", want: "allow rule fresh"},
		{name: "a question mark encoded twice", path: "/q%253Fsession=1", want: "deny rule fresh", readAs: "/q?session=1"},
		{name: "a question mark encoded three times", path: "/q%25253fsession=1", want: "deny rule fresh", readAs: "/q?session=1"},
		{name: "a slash encoded twice, and a parameter", path: "/private;a%252Fx", want: "deny rule fresh", readAs: "/private/x"},
		{name: "sub-delims of a query, encoded", path: "/x?sort=a%2cb", want: "deny rule fresh"},
		{name: "sub-delims of a rule, encoded", path: "/x?id=(1)", want: "deny rule fresh"},
		{name: "other delims of a query", path: "/x?sort%3Da%26b=1,2", want: "allow no-match fresh"},
		{name: "an Allow for this spelling", path: "/private%2Fopen", want: "allow rule fresh"},
		{name: "an Allow for another spelling", path: "//private/x;public", want: "deny rule fresh", readAs: "/private/x"},
		{name: "literal", readings: Literal, path: "//private/x", want: "allow no-match fresh"},
		{name: "literal, an Allow by chance", readings: Literal, path: "//private/x;public", want: "allow rule fresh"},

		{name: "a denying override", overrides: override(Deny, "/closed/"), path: "/closed%2Fx", want: "deny override", readAs: "/closed/x"},
		{name: "a denying override, read literally", overrides: override(Deny, "/closed/"), path: "/closed//x", want: "deny override"},
		{name: "a denying override and an encoded question mark", overrides: override(Deny, "/*?id="), path: "/q%3Fid=1", want: "deny override", readAs: "/q?id=1"},
		{name: "a denying override and a query behind one", overrides: override(Deny, "/*&id="), path: "/q%3Fa=1?id=1", want: "deny override", readAs: "/q?a=1&id=1"},
		{name: "a denying override and a question mark encoded twice", overrides: override(Deny, "/*?id="), path: "/q%253Fid=1", want: "deny override", readAs: "/q?id=1"},
		{name: "a denying override and a malformed percent sign", overrides: override(Deny, "/*?off=50%"), path: "/q?off=50%25", want: "deny override"},
		{name: "a denying override and sub-delims", overrides: override(Deny, "/*q=(a)"), path: "/x?q=%28a%29", want: "deny override"},
		{name: "an allowing override and sub-delims", overrides: override(Allow, "/x?sort=a%2Cb"), path: "/x?sort=a,b", want: "allow override"},
		{name: "an allowing override and another parameter", overrides: override(Allow, "/x?sort=a%26b"), path: "/x?sort=a&b", want: "allow no-match fresh"},
		{name: "an allowing override and its sub-delims", overrides: override(Allow, "/x?sort=a%2Cb"), path: "/x?sort=a%2Cb", want: "allow override"},
		{name: "an allowing override and an encoded question mark", overrides: override(Allow, "/q%3F", "/q$"), path: "/q%3Fsession=1", want: "allow override"},
		{name: "an allowing override for another query", overrides: override(Allow, "/*?a=1"), path: "/q%3Fsession=1?a=1", want: "deny rule fresh", readAs: "/q?session=1&a=1"},
		{name: "a denying override, literal", overrides: override(Deny, "/closed/"), readings: Literal, path: "/closed%2Fx", want: "allow no-match fresh"},
		{name: "an allowing override does not reach other spellings", overrides: override(Allow, "/private/open/"), path: "//private/open/x", want: "deny rule fresh", readAs: "/private/open/x"},
		{name: "an allowing override holds for its path", overrides: override(Allow, "/private/"), path: "/private//x;y", want: "allow override"},
		{name: "an allowing override does not open another path", overrides: override(Allow, "/public/"), path: "/public/..;/private/x", want: "deny rule fresh", readAs: "/private/x"},
		{name: "an allowing override, literal", overrides: override(Allow, "/public/"), readings: Literal, path: "/public/..;/private/x", want: "allow override"},
		{name: "an allowing override for this spelling", overrides: override(Allow, "/private%2Fx"), path: "/private%2fx", want: "allow override"},
		{name: "an allowing override for all paths", overrides: override(Allow), path: "//private/x", want: "allow override"},
		{name: "the first override wins", overrides: append(override(Allow, "/private/"), override(Deny, "/")...), path: "/private//x", want: "allow override"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.Serve("http://a.example/robots.txt", raw(readingsRobots))
				settings := defaults()
				settings.Readings = test.readings
				c := Config{Overrides: test.overrides, Robots: settings, Transport: web, Log: slog.New(slog.DiscardHandler)}
				e := engineWith(t, c)
				ask := asks(t, "http://a.example"+test.path, "Bot/1.0")
				d, err := e.Decide(t.Context(), ask)
				if got := verdict(d, err); got != test.want || d.ReadAs != test.readAs {
					t.Errorf("got %s, read as %q, want %s, read as %q", got, d.ReadAs, test.want, test.readAs)
				}
				if again, ok := again(c, ask, d); !ok || again.Allow != d.Allow || again.ReadAs != d.ReadAs {
					t.Errorf("again: got %v, read as %q", again.Allow, again.ReadAs)
				}
			})
		})
	}
}

func TestCheckPath(t *testing.T) {
	target := targetOf(t, "http://a.example/public/..%2Fprivate/x")
	for readings, want := range map[Readings]error{"": ErrHiddenDots, Strict: ErrHiddenDots, Literal: nil} {
		settings := defaults()
		settings.Readings = readings
		e := engineWith(t, Config{Robots: settings, Transport: newOrigins(), Log: slog.New(slog.DiscardHandler)})
		if err := e.CheckPath(target); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", readings, err, want)
		}
	}
}

// TestReadingsShareSteps: all readings of a path share the steps of one decision, so that a path with
// several readings does not take several times as long.
func TestReadingsShareSteps(t *testing.T) {
	file := robotstxt.Parse([]byte("User-agent: *\n"+strings.Repeat("Disallow: /*"+strings.Repeat("ab", 10)+"c\n", 1500)), 0)
	path := "/" + strings.Repeat("ab", 5000) + "/;/x"
	for readings, want := range map[Readings]bool{Literal: true, Strict: false} {
		d := Decision{Robots: &snapshot.Resolution{File: file}}
		if d.judge(Request{Target: canonical.Target{Path: path}}, readings); d.Allow != want {
			t.Errorf("%s: allow %v; want %v", readings, d.Allow, want)
		}
	}
}
