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
		web.serve("https://closed.example/robots.txt", raw("HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /"))
		web.serve("https://open.example/robots.txt", raw("HTTP/1.1 200 OK\n\nUser-agent: *\nAllow: /"))
		for _, c := range []struct {
			host  string
			paths []string
			allow bool
			want  string
		}{
			{"closed.example", nil, true, "allow override"},
			{"closed.example", []string{"/"}, true, "allow override"},
			{"closed.example", []string{"/x", "*"}, true, "allow override"},
			{"closed.example", []string{"/*"}, true, "allow override"},
			{"closed.example", []string{"/$"}, true, "deny rule fresh"},
			{"closed.example", []string{"/api/"}, true, "deny rule fresh"},
			{"closed.example", []string{"/*?*"}, true, "deny rule fresh"},
			{"open.example", nil, false, "deny override"},
			{"open.example", []string{"/"}, false, "deny override"},
			{"open.example", []string{"/$"}, false, "deny override"},
			{"open.example", []string{"/api/"}, false, "allow rule fresh"},
		} {
			o := Override{Hosts: hosts(t, c.host), Paths: PathRules(c.paths), Allow: c.allow, Reason: "agreed"}
			e, err := New(Config{Overrides: []Override{o}, Robots: defaults(), Transport: web, Store: newDurable(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(e.DecideHost(t.Context(), asks(t, "https://"+c.host+"/", "Bot/1.0"))); got != c.want {
				t.Errorf("%s, %q, allow %v: %s, want %s", c.host, c.paths, c.allow, got, c.want)
			}
			e.Close()
		}
	})
}
