package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"robotsgate/policy/robotstxt"
)

func parse(text string) *robotstxt.File { return robotstxt.Parse([]byte(text), 0) }

// A comparison is of two versions of a robots.txt.
type comparison struct {
	name, was, is string
	tokens, paths []string
	want          string // lines
}

func (c comparison) check(t *testing.T, got []string) {
	t.Helper()
	if s := strings.Join(got, "\n"); s != c.want {
		t.Errorf("%s: got\n%s\nwant\n%s", c.name, s, c.want)
	}
}

func TestCompare(t *testing.T) {
	for _, test := range []comparison{
		{"nothing", "User-agent: *\nDisallow: /a\n", "# new\nUser-agent: *\nDisallow: /a\n", nil, nil, ""},
		{"a rule less", "User-agent: *\nDisallow: /a\n", "User-agent: *\n", nil, nil,
			"/a: deny (line 2: Disallow: /a) -> allow (no rule matches)"},
		{"for another", "User-agent: x\nDisallow: /a\n", "User-agent: *\n", []string{"y"}, nil, ""},
		{"wildcards and ends", "User-agent: *\nDisallow: /*.pdf$\n", "User-agent: *\nDisallow: /*.pdf\n", nil, nil,
			"/.pdfx: allow (no rule matches) -> deny (line 2: Disallow: /*.pdf)"},
		{"a path from a log", "User-agent: *\nAllow: /\n", "User-agent: *\nDisallow: /a*c\n", nil, []string{"/abc"},
			"/abc: allow (line 2: Allow: /) -> deny (line 2: Disallow: /a*c)\n/ac: allow (line 2: Allow: /) -> deny (line 2: Disallow: /a*c)\n/axc: allow (line 2: Allow: /) -> deny (line 2: Disallow: /a*c)"},
		{"the second token", "User-agent: *\nDisallow: /\n", "User-agent: b\nDisallow: /b\n", []string{"a", "b"}, nil,
			"/: deny (line 2: Disallow: /) -> allow (no rule matches)"},
	} {
		var got []string
		for _, d := range Compare(parse(test.was), parse(test.is), test.tokens, test.paths) {
			got = append(got, d.Path+": "+Words(d.Was)+" -> "+Words(d.Is))
		}
		test.check(t, got)
	}
}

// TestCompareBounded: 20,000 paths are compared for one change.
func TestCompareBounded(t *testing.T) {
	paths := make([]string, 25_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/%d", i)
	}
	if n := len(Compare(parse(""), parse("User-agent: *\nDisallow: /\n"), nil, paths)); n != 20_000 {
		t.Errorf("%d paths are decided differently, want 20,000", n)
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
		fmt.Fprintln(&long, i)
	}
	if lines, more := Diff("a", "", "b", long.String()); len(lines) != MaxDiff || more != 9*MaxDiff+3 {
		t.Errorf("%d lines and %d more", len(lines), more)
	}
}

func TestTokens(t *testing.T) {
	got := Tokens(parse("User-agent: b\nDisallow: /\n"), parse("User-agent: A\nUser-agent: b\nDisallow: /\n"), 10)
	if !slices.Equal(got, []string{"", "a", "b"}) {
		t.Errorf("got %q", got)
	}
}
