package policy

import (
	"log/slog"
	"testing"
	"testing/synctest"
)

// Only an override for all paths allows a whole host. One for the root denies it.
func TestOverrideOfWholeHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve("https://closed.example/robots.txt", raw("HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /"))
		web.Serve("https://open.example/robots.txt", raw("HTTP/1.1 200 OK\n\nUser-agent: *\nAllow: /"))
		for _, c := range []struct {
			host   string
			paths  []string
			action Action
			want   string
		}{
			{"closed.example", nil, Allow, "allow override"},
			{"closed.example", []string{"/"}, Allow, "allow override"},
			{"closed.example", []string{"/x", "*"}, Allow, "allow override"},
			{"closed.example", []string{"/*"}, Allow, "allow override"},
			{"closed.example", []string{"/$"}, Allow, "deny rule fresh"},
			{"closed.example", []string{"/api/"}, Allow, "deny rule fresh"},
			{"closed.example", []string{"/*?*"}, Allow, "deny rule fresh"},
			{"open.example", nil, Deny, "deny override"},
			{"open.example", []string{"/"}, Deny, "deny override"},
			{"open.example", []string{"/$"}, Deny, "deny override"},
			{"open.example", []string{"/api/"}, Deny, "allow rule fresh"},
		} {
			o := Override{Hosts: hosts(t, c.host), Paths: c.paths, Action: c.action, Reason: "agreed"}
			e := engineWith(t, Config{Overrides: []Override{o}, Robots: defaults(), Transport: web, Log: slog.New(slog.DiscardHandler)})
			if got := verdict(e.DecideHost(t.Context(), asks(t, "https://"+c.host+"/", "Bot/1.0"))); got != c.want {
				t.Errorf("%s, %q, %s: %s, want %s", c.host, c.paths, c.action, got, c.want)
			}
			e.Close()
		}
	})
}

// TestPreparedCopy: a copy of a prepared override with other paths is for these.
func TestPreparedCopy(t *testing.T) {
	o := Prepared([]Override{{Paths: []string{"/a/"}}})[0]
	o.Paths = []string{"/b/"}
	group := Prepared([]Override{o})[0].group()
	for path, want := range map[string]bool{"/a/x": false, "/b/x": true} {
		if _, got := group.Match(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// TestMisspelt: a word that is no setting refuses.
func TestMisspelt(t *testing.T) {
	for word, want := range map[Reserved]bool{"": false, AnnotateReserved: false, RefuseReserved: true, "Refuse": true} {
		if got := (Usage{Reserved: word}).Refuses(); got != want {
			t.Errorf("%q: got %v, want %v", word, got, want)
		}
	}
}
