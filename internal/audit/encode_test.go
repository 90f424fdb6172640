package audit

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/usage"
)

var hostileTexts = []string{
	"a", "http://a.example/?a=1&b=<c>", "\"", "\\", "/", "\x00\b\f\n\r\t\x1b\x1f", " ~", "\x7f", "\u0080\u009b", "é", "中", "\u00ad", "\u200b", "\u2028\u2029",
	"\u202e", "\ufeff", "\ufffd", "\U0001f600", "\U000e0001", "\xff", "\xc3", "\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", `\u0041`, strings.Repeat("x", 300),
}

// FuzzEncode: an entry with any text is one line of printable characters, and reads back as
// it was.
func FuzzEncode(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, int64(1_500_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, duration int64) {
		r := &record.Record{Time: time.Unix(1, 2).UTC(), Method: "GET", URL: text, Tags: []string{text},
			Usage: []usage.Detail{{Use: text, Value: "n", Line: 1}}, Robots: &record.Robots{URL: text}, Duration: time.Duration(duration).Seconds()}
		line, err := lineOf(*r)
		if err != nil {
			t.Fatal(err)
		}
		body, ok := bytes.CutSuffix(line, []byte("}\n"))
		if !ok || bytes.ContainsFunc(body, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("%q is written as %q", text, line)
		}
		got, err := parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		valid := strings.Map(func(c rune) rune { return c }, text) // bytes that are not UTF-8 become U+FFFD
		r.URL, r.Tags, r.Robots.URL, r.Usage[0].Use = valid, []string{valid}, valid, valid
		if !reflect.DeepEqual(got, r) {
			t.Errorf("%q: read back as %+v, want %+v", text, got, r)
		}
	})
}

// TestUsage: a record has the preferences with their sources, and the one that refused. One
// without preferences has no such members.
func TestUsage(t *testing.T) {
	reserved := usage.Preference{Category: "train-ai", Source: usage.ContentUsage, In: usage.InRobots, Line: 4}
	stated := usage.Stated{
		Preferences: []usage.Preference{reserved, {Category: "tdm", Allowed: true, Source: usage.TDMRep, In: usage.InHeader}},
		Licenses:    []usage.License{{URL: "https://a.example/l?id=1", Source: usage.RSL, In: usage.InMeta}},
	}
	d := &policy.Decision{Enforced: true, Reason: policy.ByUsage, Reserved: reserved}
	for _, c := range []struct {
		name string
		d    *policy.Decision
		x    record.Record
		want string
	}{
		{"refused", d, record.Record{Usage: stated.Details(), Licenses: stated.URLs()},
			`"decision":"deny","reason":"usage","reserved":{"use":"train-ai","value":"n","source":"content-usage","in":"robots","line":4},` +
				`"usage":[{"use":"train-ai","value":"n","source":"content-usage","in":"robots","line":4},{"use":"tdm","value":"y","source":"tdmrep","in":"header"}],` +
				`"licenses":["https://a.example/l?id=1"],"status":0`},
		{"nothing stated", &policy.Decision{Allow: true, Reason: policy.NoMatch}, record.Record{}, `"reason":"no-match","status":0`},
	} {
		c.d.Record(&c.x)
		line, err := lineOf(c.x)
		if err != nil || !strings.Contains(string(line), c.want) {
			t.Errorf("%s: %v, got %s, want %s", c.name, err, line, c.want)
		}
	}
}
