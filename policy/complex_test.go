package policy

import (
	"strings"
	"testing"

	"robotsgate/policy/snapshot"
)

// complexBody is a robots.txt that takes more steps than a decision may for complexPath,
// although no rule of it denies anything.
var (
	complexBody = "User-agent: *\n" + strings.Repeat("Allow:/*/ab\n", 42000)
	complexPath = "/ab" + strings.Repeat("x", 16000)
)

// TestTooComplexDenies checks that a decision beyond the bound of steps denies, that it
// denies again from the same evidence, and that it concerns no other path.
func TestTooComplexDenies(t *testing.T) {
	robots := Robots{Settings: snapshot.Settings{MaxBytes: 512 << 10}}
	for path, want := range map[string]Reason{complexPath: TooComplex, "/x": NoMatch, "/robots.txt": Implicit} {
		target := targetOf(t, "http://site.example"+path)
		d := robots.Judge(200, []byte(complexBody), target, []string{"ExampleBot"})
		if d.Reason != want || d.Allow != (want != TooComplex) {
			t.Errorf("%.20s: allow %v, %s; want %s", path, d.Allow, d.Reason, want)
		}
		whole := d
		if whole.judge(Request{Target: target, whole: true}, Strict); whole.Allow != (want != TooComplex) {
			t.Errorf("%.20s: a decision about the whole host opens it", path)
		}
		if again, ok := again(Config{Robots: robots}, Request{Target: target, Crawler: &Crawler{Name: "default"}}, d); !ok || again.Reason != d.Reason || again.Allow != d.Allow {
			t.Errorf("%.20s: decided again: %v, allow %v, %s", path, ok, again.Allow, again.Reason)
		}
	}
}
