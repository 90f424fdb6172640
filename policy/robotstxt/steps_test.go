package robotstxt

import (
	"fmt"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// fileOf returns a robots.txt of 511 KiB that begins with a line for everyone.
func fileOf(lines func(i int) string) []byte {
	var b strings.Builder
	b.WriteString("User-agent:*\n")
	for i := 0; b.Len() < 511<<10; i++ {
		b.WriteString(lines(i))
	}
	return []byte(b.String()[:511<<10])
}

// stepsOf returns how many steps a search takes.
func stepsOf(f *File, path string, limit int) (steps int) {
	left := limit
	f.Group("a").search(newPath(path), &left)
	return limit - left
}

// rulesOf returns how many rules a file has.
func rulesOf(f *File) (n int) {
	for i := range f.sections {
		n += len(f.sections[i].rules)
	}
	return n
}

// TestHonestSteps checks that large files which are not hostile need less than the steps that a decision may
// take, for URLs of 500 octets.
func TestHonestSteps(t *testing.T) {
	words := []string{"sort", "filter", "color", "size", "brand", "price", "page", "view", "lang", "currency", "order", "dir", "limit", "mode", "cat", "tag"}
	for _, test := range []struct {
		name  string
		lines func(i int) string
		path  string
	}{
		{"numbers", func(i int) string { return fmt.Sprintf("Disallow: /*/private-%d\nDisallow: /*?id=%d$\n", i, i) }, "/" + strings.Repeat("path/of/private-x/", 900) + "?id=x"},
		{"one parameter", func(i int) string { return fmt.Sprintf("Disallow: /*?%s=%d\n", words[i%16], i) }, "/shop?" + strings.Repeat("sort=a&color=b&", 1050)},
		{"two parameters", func(i int) string { return fmt.Sprintf("Disallow: /*?*%s=*&%s=%d\n", words[i%16], words[i/16%16], i) }, "/shop?" + strings.Repeat("sort=a&color=b&", 1050)},
		{"folders", func(i int) string {
			return fmt.Sprintf("Disallow: /*/%s/%s/print$\nAllow: /%s/*/%d\n", words[i%16], words[i/16%16], words[i/7%16], i)
		}, "/shop" + strings.Repeat("/sort/color/size/brand", 730)},
		{"file types", func(i int) string { return fmt.Sprintf("Disallow: /*.%s%d$\n", words[i%16], i) }, "/" + strings.Repeat("index.sort.color/", 960)},
		{"URLs in the query", func(i int) string { return fmt.Sprintf("Disallow: /*?u=http://%s.example/%d\n", words[i%16], i) }, "/r?u=" + strings.Repeat("http://sort.example/", 810)},
		{"no wildcards", func(i int) string { return fmt.Sprintf("Disallow: /%s/%s/%d\n", words[i%16], words[i/16%16], i) }, "/sort/color/" + strings.Repeat("1234/", 3200)},
	} {
		f := Parse(fileOf(test.lines), 0)
		if steps := stepsOf(f, test.path[:500], maxSteps); steps >= maxSteps {
			t.Errorf("%s: %d steps, want less", test.name, steps)
		} else {
			t.Logf("%s: %d rules, %d steps, 1/%d of the bound", test.name, rulesOf(f), steps, maxSteps/steps)
		}
	}
}

// hostileFiles are made to take many steps for the path beside them.
var hostileFiles = []struct {
	name    string
	lines   func(i int) string
	path    string
	complex bool // they exceed the bound
}{
	{"overlapping literals", func(int) string { return "Disallow:/*" + strings.Repeat("ab", 10) + "c\n" }, "/" + strings.Repeat("ab", 8000), true},
	{"long overlapping literals", func(i int) string { return "Disallow:/*" + strings.Repeat("ab", 100+i%50) + "c\n" }, "/" + strings.Repeat("ab", 8000), true},
	{"most rules", func(int) string { return "Allow:/*aac\n" }, "/" + strings.Repeat("a", 16000), true},
	{"most wildcards", func(int) string { return "Allow:/" + strings.Repeat("*a", 100) + "*b\n" }, "/" + strings.Repeat("a", 16000), true},
	{"one rule of wildcards", func(i int) string {
		if i == 0 {
			return "Allow:/"
		}
		return "*a*b"
	}, "/" + strings.Repeat("a", 16000), false},
	{"end", func(int) string { return "Allow:/*a*aab$\n" }, "/" + strings.Repeat("a", 15000) + "ab", false},
	{"nested beginnings", func(i int) string { return "Allow:/" + strings.Repeat("a", i) + "*b\n" }, "/" + strings.Repeat("a", 16000), false},
	{"encoded octets", func(int) string { return "Allow:/*%22%22%22%22x\n" }, "/" + strings.Repeat("%22", 5000), true},
	{"escapes", func(int) string { return "Allow:/*%2F%2F%2F%2Fx\n" }, "/?" + strings.Repeat("/", 16000), true},
	{"many groups", func(i int) string { return fmt.Sprintf("User-agent:a\nUser-agent:b%d\nAllow:/*abx\n", i) }, "/" + strings.Repeat("ab", 8000), true},
	{"many names", func(i int) string { return fmt.Sprintf("User-agent:%x\nAllow:/\n", i) }, "/" + strings.Repeat("ab", 8000), false},
	{"one group of many names", func(i int) string { return fmt.Sprintf("User-agent:%x\n", i) }, "/" + strings.Repeat("ab", 8000), false},
	{"wrong order", func(i int) string { return "Allow:/*zz*" + strings.Repeat("ab", 5+i%10) + "c\n" }, "/" + strings.Repeat("ab", 15) + "czz" + strings.Repeat("ab", 8000), true},
}

// TestHostileSteps checks that no file makes a decision take more steps than it may, and
// that a decision which would take more denies.
func TestHostileSteps(t *testing.T) {
	// A search ends after it has exceeded its steps, by at most the length of the path or
	// of a pattern.
	const over = 3*16<<10 + 512<<10
	for _, test := range hostileFiles {
		f := Parse(fileOf(test.lines), 0)
		steps := stepsOf(f, test.path, maxSteps)
		if steps > maxSteps+over || steps >= maxSteps != test.complex {
			t.Errorf("%s: %d steps; want at most %d, too complex %v", test.name, steps, maxSteps, test.complex)
		}
		start := gatetest.CPUTime(t)
		v := f.Decide(test.path, "a")
		t.Logf("%s: %d rules, %d steps, %v", test.name, rulesOf(f), steps, gatetest.CPUTime(t)-start)
		if test.complex != (v.Reason == TooComplex) || test.complex && v.Allowed {
			t.Errorf("%s: allowed %v, %s", test.name, v.Allowed, v.Reason)
		}
	}
}

// TestTooComplex checks decisions beyond the bound: a path that a rule allows is denied
// too, the robots.txt itself is not, and other crawlers are not affected.
func TestTooComplex(t *testing.T) {
	data := append(fileOf(func(int) string { return "Allow:/*/ab\n" }), "\nUser-agent: other\nDisallow: /x\n"...)
	f := Parse(data, 0)
	path := "/ab" + strings.Repeat("x", 16000)
	for _, test := range []struct {
		path, token string
		want        Verdict
	}{
		{path, "a", Verdict{Reason: TooComplex}},
		{"/q" + path, "a", Verdict{Allowed: true, Reason: ByRule}}, // this one is found at once
		{"/robots.txt", "a", Verdict{Allowed: true, Reason: Implicit}},
		{path, "other", Verdict{Allowed: true, Reason: NoMatch}},
	} {
		if v := f.Decide(test.path, test.token); v.Allowed != test.want.Allowed || v.Reason != test.want.Reason || !v.Group.OK() {
			t.Errorf("%.20s for %s: allowed %v, %s; want %v, %s", test.path, test.token, v.Allowed, v.Reason, test.want.Allowed, test.want.Reason)
		}
	}
	// An effort is used up, even for a decision of few steps.
	effort := NewEffort()
	f.DecideWithin(&effort, path, "a")
	if v := f.DecideWithin(&effort, "/q"+path, "a"); v.Allowed || v.Reason != TooComplex {
		t.Errorf("with an effort that is used up: allowed %v, %s", v.Allowed, v.Reason)
	}
}
