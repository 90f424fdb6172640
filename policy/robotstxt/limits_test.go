package robotstxt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestHostile checks that no file makes parsing or a decision take more than linear time.
// The limits are far above linear time and far below quadratic time.
func TestHostile(t *testing.T) {
	path := "/" + strings.Repeat("a", 2000)
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if strings.Contains(format, "%") {
				fmt.Fprintf(&b, format+"\n", i)
			} else {
				b.WriteString(format + "\n")
			}
		}
		return b.String()
	}
	var nested strings.Builder
	for i := range 900 {
		nested.WriteString("Disallow: " + path[:i+1] + "*b\n")
	}
	var company strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&company, "User-agent: a\nUser-agent: b%d\nDisallow: /a%d\n", i, i)
	}
	for name, rules := range map[string]string{
		"stars":              lines(10000, "Disallow: /"+strings.Repeat("*a", 18)+"*b"),
		"stars, other rules": lines(10000, "Disallow: /*a*aa*a*aaa*a*%d*b"),
		"segments":           lines(10000, "Disallow: /*aaaa*aaaa*aaaa*aaaa*aaab"),
		"one long pattern":   "Disallow: /" + strings.Repeat("*a", 200000) + "*b\n",
		"long segments":      lines(500, "Disallow: /*"+strings.Repeat("a", 999)+"b"),
		"two long patterns":  "Disallow: /" + strings.Repeat("a", 250000) + "*b\nDisallow: /" + strings.Repeat("a", 250000) + "*c\n",
		"one gram":           lines(10000, "Disallow: /*aaaa*%d$"),
		"grams of the path":  lines(10000, "Disallow: /*aaaa*aaaab"),
		"query":              lines(10000, "Disallow: /*?*%%2F*a*a*a*%d*b"),
		"nested":             nested.String(),
		"alike":              lines(500, "Disallow: "+path[:1000]),
		"many names":         lines(20000, "User-agent: b%d"),
		"many delays":        lines(15000, "User-agent: a\nUser-agent: b%d\nCrawl-delay: 1"),
		"all in company":     "User-agent: a\n" + lines(10000, "User-agent: b%d") + lines(10000, "Disallow: /c%d") + company.String(),
	} {
		data := []byte("User-agent: a\n" + rules)
		start := gatetest.CPUTime(t)
		f := Parse(data, 0)
		parsing := gatetest.CPUTime(t) - start
		start = gatetest.CPUTime(t)
		f.Decide(path+"?"+path, "a")
		deciding := gatetest.CPUTime(t) - start
		t.Logf("%s: %d bytes, %v to parse, %v to decide, %.1f bytes kept for each", name, len(data), parsing, deciding, float64(f.Size())/float64(len(data)))
		if parsing > 2*time.Second || deciding > time.Second || f.Size() > 8*len(data)+1000 {
			t.Errorf("%s: %v to parse, %v to decide, %d bytes kept of %d", name, parsing, deciding, f.Size(), len(data))
		}
	}
}
