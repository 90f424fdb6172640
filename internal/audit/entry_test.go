package audit

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// TestEntryOfCopy: a decision by an older copy cites the copy and the origin's latest answer.
func TestEntryOfCopy(t *testing.T) {
	d := *decided("User-agent: *\nDisallow: /private/\n", "ExampleBot", "Other")
	older, failed := *d.Robots.Snapshot, *d.Robots.Snapshot
	older.SHA256, older.Lifetime = "older", time.Minute
	failed.Status, failed.Since, failed.Lifetime = 500, time.Unix(1, 0), -1
	older.Since = time.Time{}
	d.Robots = new(*d.Robots)
	d.Robots.Answer, d.Robots.Good = &failed, &older
	r := entryOf(&proxy.Record{Method: "GET", URL: "http://a.example/", Origin: "http://a.example", Decision: &d}, false).Robots
	if r.Instead == nil || r.Instead.Status != 500 || !r.Instead.Since.Equal(failed.Since) || r.Instead.Lifetime != nil {
		t.Errorf("latest answer: got %+v", r.Instead)
	}
	if r.Copy == nil || r.Copy.SHA256 != "older" || r.Copy.Lifetime == nil || *r.Copy.Lifetime != 60 || !r.Copy.Since.IsZero() {
		t.Errorf("copy: got %+v", r.Copy)
	}
	if got := r.Copy.Snapshot(); got.Lifetime != older.Lifetime || got.SHA256 != older.SHA256 {
		t.Errorf("snapshot of the copy: got %+v", got)
	}
}

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
		r := &Entry{Time: time.Unix(1, 2).UTC(), Method: "GET", URL: text, Tags: []string{text},
			Usage: []usage.Detail{{Use: text, Value: "n", Line: 1}}, Robots: &Robots{URL: text}, Duration: time.Duration(duration).Seconds()}
		line, err := r.line()
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

// TestOriginAndPath: the URL is split at the end of its origin, also with its query redacted. A URL
// that could not be parsed is not split.
func TestOriginAndPath(t *testing.T) {
	for _, raw := range []string{
		"http://a.example", "http://a.example/", "https://a.example:8443/x?y=z", "http://[2001:db8::1]:81/a//b?c=://d/", "http://a/?", "http://a//?/", "http://a/:", "https://bücher.example/é|\"?é\\",
	} {
		target, err := canonical.ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{target.String(), target.Origin()} {
			for _, redact := range []bool{false, true} {
				r := entryOf(&proxy.Record{URL: url, Origin: target.Origin()}, redact)
				want := url
				if redact {
					want = Redact(url)
				}
				if r.Origin != target.Origin() || r.Origin+r.Path != want || r.URL != "" {
					t.Errorf("%s: got %q, %q and %q", url, r.Origin, r.Path, r.URL)
				}
			}
		}
	}
	for _, url := range []string{"", "/x", "a.example", "http://A.example/", "http://a.example/../x", "ftp://a.example/"} {
		if r := entryOf(&proxy.Record{URL: url}, false); r.Origin != "" || r.Path != "" || r.URL != url {
			t.Errorf("%q: got %q, %q and %q, want the URL alone", url, r.Origin, r.Path, r.URL)
		}
	}
}

// TestEntryOfUsage: an entry has the preferences with their sources, and the one that refused. A
// entry without preferences has no such members.
func TestEntryOfUsage(t *testing.T) {
	reserved := usage.Preference{Category: "train-ai", Source: usage.ContentUsage, In: usage.InRobots, Line: 4}
	stated := usage.Stated{
		Preferences: []usage.Preference{reserved, {Category: "tdm", Allowed: true, Source: usage.TDMRep, In: usage.InHeader}},
		Licenses:    []usage.License{{URL: "https://a.example/l?id=1", Source: usage.RSL, In: usage.InMeta}},
	}
	d := &policy.Decision{Enforced: true, Reason: policy.ByUsage, Reserved: reserved}
	for _, c := range []struct {
		name string
		x    proxy.Record
		hide bool
		want string
	}{
		{"refused", proxy.Record{Decision: d, Stated: stated, Refused: proxy.Refusal(policy.ByUsage)}, false,
			`"decision":"deny","reason":"usage","reserved":{"use":"train-ai","value":"n","source":"content-usage","in":"robots","line":4},` +
				`"usage":[{"use":"train-ai","value":"n","source":"content-usage","in":"robots","line":4},{"use":"tdm","value":"y","source":"tdmrep","in":"header"}],` +
				`"licenses":["https://a.example/l?id=1"],"status":0`},
		{"redacted", proxy.Record{Decision: d, Stated: stated}, true, `"licenses":["https://a.example/l?id=*"],`},
		{"nothing stated", proxy.Record{Decision: &policy.Decision{Allow: true, Reason: policy.NoMatch}}, false, `"reason":"no-match","status":0`},
	} {
		r := entryOf(&c.x, c.hide)
		line, err := r.line()
		if err != nil || !strings.Contains(string(line), c.want) {
			t.Errorf("%s: %v, got %s, want %s", c.name, err, line, c.want)
		}
	}
}
