package history

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
)

// kept is an archive of one origin.
type kept struct {
	snapshot.Archive
	answers []snapshot.Answer
	texts   map[string]string // by digest
}

func (k *kept) HostOrigins(string) ([]string, error)      { return []string{"https://a.example"}, nil }
func (k *kept) History(string) ([]snapshot.Answer, error) { return k.answers, nil }
func (k *kept) Body(_, digest string) (string, error) {
	if text, ok := k.texts[digest]; ok {
		return text, nil
	}
	return "", fs.ErrNotExist
}

// archive returns an archive of answers, one a second. Each is given as "ASKER TEXT", or "ASKER STATUS".
func archive(answers ...string) *kept {
	k := &kept{texts: map[string]string{}}
	for i, a := range answers {
		asker, text, _ := strings.Cut(a, " ")
		s := &snapshot.Snapshot{Status: 200}
		if n, _ := fmt.Sscan(text, &s.Status); n == 0 {
			s.SHA256 = snapshot.Digest(text)
			k.texts[s.SHA256] = text
		}
		k.answers = append(k.answers, snapshot.Answer{Asker: asker, From: time.Unix(int64(i), 0), Snapshot: s})
	}
	return k
}

func printed(t *testing.T, k *kept, o Options) string {
	t.Helper()
	var out strings.Builder
	o.Origin = "a.example"
	if err := Print(&out, k, "data", &snapshot.Settings{}, o); err != nil {
		t.Error(err)
	}
	return out.String()
}

// TestDiffs: the newest diff is the first. Each is of a text and the one before it of the same asker, answers without a
// text aside. A text that came back unchanged has none.
func TestDiffs(t *testing.T) {
	k := archive("x old\n", "y other\n", "x 404", "x old\n", "y 503", "x new\n", "y another\n")
	got, want := printed(t, k, Options{Diff: true}), []string{
		"\n  1970-01-01 00:00:06 ", "\n  1970-01-01 00:00:02  now                  x            unavailable    404 ", "\n  1970-01-01 00:00:00 ",
		"\n\n1970-01-01 00:00:06 UTC, for y\n--- ", "1970-01-01 00:00:01\n+++ ", "1970-01-01 00:00:06\n@@ -1,1 +1,1 @@\n-other\n+another\n",
		"\n1970-01-01 00:00:05 UTC, for x\n--- ", "1970-01-01 00:00:03\n+++ ", "1970-01-01 00:00:05\n@@ -1,1 +1,1 @@\n-old\n+new\n",
	}
	rest := got
	for _, part := range want {
		i := strings.Index(rest, part)
		if i < 0 {
			t.Fatalf("no %q in its place in\n%s", part, got)
		}
		rest = rest[i+len(part):]
	}
	if rest != "" || strings.Count(got, "+++") != 2 {
		t.Errorf("too much in\n%s", got)
	}
	delete(k.texts, snapshot.Digest("old\n"))
	if got := printed(t, k, Options{Diff: true}); !strings.HasSuffix(got, ": a file is not kept any more, or has been changed\n") {
		t.Errorf("with a file less, got\n%s", got)
	}
	if got := printed(t, archive("x old\n", "y other\n", "x 404", "x old\n"), Options{Diff: true}); !strings.HasSuffix(got, "\n\nNo text differs from the one before it.\n") {
		t.Errorf("of two texts, each for another asker, got\n%s", got)
	}
}

// TestDiff: a diff is bounded, and safe for a terminal.
func TestDiff(t *testing.T) {
	lines, more := Diff("a", "x\r\nold \x1b[2J\n", "b", "x\nnew\n")
	if got := strings.Join(lines, "\n"); got != "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-old \\x1b[2J\n+new" || more != 0 {
		t.Errorf("got\n%s\nand %d more", got, more)
	}
	var long strings.Builder
	for i := range 10 * MaxDiff {
		fmt.Fprintln(&long, "line", i)
	}
	if lines, more := Diff("a", "", "b", long.String()); len(lines) != MaxDiff || more != 9*MaxDiff+3 {
		t.Errorf("%d lines and %d more", len(lines), more)
	}
	if got := printed(t, archive("x old\n", "x "+long.String()), Options{Diff: true}); !strings.HasSuffix(got, "\nand 4504 lines more\n") {
		t.Errorf("it ends with %q", got[max(0, len(got)-100):])
	}
}

// TestHistoryBy: the history names the gate of a fleet that has fetched an answer.
func TestHistoryBy(t *testing.T) {
	k := archive("x 404")
	for by, want := range map[string]string{"": "404        -\n", "gate1\x1b": "404        -   (fetched by gate gate1\\x1b)\n"} {
		if k.answers[0].Snapshot.By = by; !strings.HasSuffix(printed(t, k, Options{}), want) {
			t.Errorf("%q: got %q, want %q at the end", by, printed(t, k, Options{}), want)
		}
	}
}
