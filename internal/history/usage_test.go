package history

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCompareUsage(t *testing.T) {
	for _, test := range []comparison{
		{"nothing stated", "User-agent: *\nDisallow: /a\n", "User-agent: *\n", nil, nil, ""},
		{"the same, elsewhere", "User-agent: *\nContent-Usage: train-ai=n\n", "User-agent: *\nContent-Signal: ai-train=no\n", nil, nil, ""},
		{"a reservation", "User-agent: *\nAllow: /\n", "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\n", nil, nil,
			"/: nothing -> train-ai=n (line 3)"},
		{"of a path", "User-agent: *\nContent-Usage: train-ai=n\n", "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open/*.txt$\ttrain-ai=y\n", nil, nil,
			"/open/.txt: train-ai=n (line 2) -> train-ai=y (line 3)\n/open/x.txt: train-ai=n (line 2) -> train-ai=y (line 3)"},
		{"two signals", "User-agent: *\nContent-Signal: ai-train=no\nContent-Usage: train-ai=n\n", "", nil, nil,
			"/: train-ai=n (lines 2, 3) -> nothing"},
		{"denied", "User-agent: *\nContent-Usage: train-ai=n\n", "User-agent: *\nDisallow: /\nContent-Usage: train-ai=n\n", nil, nil,
			"/: train-ai=n (line 2) -> nothing"},
		{"a path from a log", "User-agent: *\nContent-Usage: /a* train-ai=n\n", "User-agent: *\nContent-Usage: /ab* train-ai=n\n", nil, []string{"/abc", "/acc"},
			"/a: train-ai=n (line 2) -> nothing\n/acc: train-ai=n (line 2) -> nothing\n/ax: train-ai=n (line 2) -> nothing"},
		{"for another", "User-agent: x\nContent-Usage: train-ai=n\n", "User-agent: *\n", []string{"y"}, nil, ""},
		{"a licence", "User-agent: *\nLicense: https://a.example/1.xml\n", "License: https://a.example/2.xml\nUser-agent: *\n", nil, nil,
			"/: licence https://a.example/1.xml (line 2) -> licence https://a.example/2.xml (line 1)"},
	} {
		var got []string
		for _, r := range CompareUsage(parse(test.was), parse(test.is), test.tokens, test.paths) {
			got = append(got, r.Path+": "+StatedWords(r.Was)+" -> "+StatedWords(r.Is))
		}
		test.check(t, got)
	}
}

// TestCompareUsageBounded: the work is bounded for a file with many statements.
func TestCompareUsageBounded(t *testing.T) {
	var long strings.Builder
	long.WriteString("User-agent: *\n")
	for i := range 16_000 {
		fmt.Fprintf(&long, "Content-Usage: /%d/*a*b*c train-ai=n\n", i)
	}
	begin := time.Now()
	CompareUsage(parse(long.String()), parse(""), nil, nil)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}
