package audit

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// largest is an entry with as much text in all members as clients and origins can send, and more.
func largest(c string) *proxy.Record {
	long := strings.Repeat(c, 100_000)
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	answer := func() *snapshot.Snapshot {
		return &snapshot.Snapshot{Status: 503, SHA256: snapshot.Digest("x"), Fetched: at, Since: at, Looped: true, HTML: true, Substitute: true, Lifetime: 123456789123 * time.Microsecond, Error: long}
	}
	origin := "https://" + strings.Repeat("a.", 126) + "a:65535"
	token := strings.Repeat("x", 1024)
	x := &proxy.Record{
		ID: strings.Repeat("I", 26), Start: at, Client: netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"), Crawler: strings.Repeat("c", 60), Method: long, Tunnel: true, Socks: true,
		URL: origin + "/" + long, Origin: origin, Status: 502, Bytes: 1 << 62, Duration: 123456789123, Error: long, Refused: proxy.ByLimit, Why: long,
		Signed: strings.Repeat("k", 43), Config: snapshot.Digest("x"),
		Decision: &policy.Decision{
			RobotsURL: origin + "/robots.txt", Reason: policy.ByUsage, Note: long, ReadAs: long, Token: token, Asked: at,
			Reserved: usage.Preference{Category: "train-ai", Source: usage.ContentSignal, In: usage.InWellKnown, Line: 1 << 30},
			Robots:   &snapshot.Resolution{State: snapshot.Unreachable, At: at, Snapshot: answer(), Answer: answer(), Good: answer()},
			TDMRep:   &snapshot.Resolution{Snapshot: answer(), TDMRep: new(usage.TDMFile)},
			Rule:     robotstxt.Rule{Pattern: long, Line: 1 << 30},
			Group:    robotstxt.Parse([]byte("User-agent: "+token+"\nDisallow: /\n"), 0).Group(token),
		},
	}
	for i := range 1000 {
		x.Tags = append(x.Tags, robotstag.Rule{Name: "unavailable_after", Value: at.Add(time.Duration(i)).String()})
		x.Stated.Preferences = append(x.Stated.Preferences, usage.Preference{Category: strings.Repeat(c, 20), Source: usage.ContentSignal, In: usage.InWellKnown, Line: i})
		x.Stated.Licenses = append(x.Stated.Licenses, usage.License{URL: "https://a.example/" + strings.Repeat("l", 1000)})
	}
	return x
}

// written returns the line of an entry in a log.
func written(t *testing.T, x *proxy.Record) (line []byte, r *Entry) {
	t.Helper()
	var out bytes.Buffer
	l := open(t, Options{Config: Config{File: "-"}, Evidence: evidence.Options{Gate: strings.Repeat("g", 26)}}, &out, nil)
	l.Write(x)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := parse(bytes.TrimSpace(entriesIn(out.Bytes())[0]))
	if err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	return entriesIn(out.Bytes())[0], r
}

// TestBounded: an entry is bounded, but for the URL of a decision, which is whole. One that is longer has no lists, and
// says so.
func TestBounded(t *testing.T) {
	for _, c := range []string{"x", "é", "\xff", `"`, "\x01", "\u202e", "\U000e0001"} {
		x := largest(c)
		if _, r := written(t, x); r.Origin+r.Path != x.URL && c == "x" {
			t.Errorf("the URL of a decision was cut to %d bytes", len(r.Origin+r.Path))
		}
		x.URL = x.Origin + "/"
		if line, r := written(t, x); len(line) > maxEntry || !r.Cut || len(r.Tags)+len(r.Usage)+len(r.Licenses) > 0 {
			t.Errorf("%q: a record with lists has %d bytes, cut %t, %d tags", c, len(line), r.Cut, len(r.Tags))
		}
		x.Tags, x.Stated.Preferences, x.Stated.Licenses = x.Tags[:10], x.Stated.Preferences[:10], nil
		if line, r := written(t, x); len(line) > maxEntry || r.Cut || len(r.Tags) != 10 || len(r.Usage) != 10 {
			t.Errorf("%q: a record with short lists has %d bytes, cut %t, %d tags, %d preferences", c, len(line), r.Cut, len(r.Tags), len(r.Usage))
		}
		for _, origin := range []string{x.Origin, ""} {
			x := largest(c)
			x.Origin, x.Decision, x.Tags, x.Stated = origin, nil, nil, usage.Stated{}
			line, r := written(t, x)
			if len(line) > 2*MaxURL {
				t.Errorf("%q: an undecided record has %d bytes, want %d at most: %s", c, len(line), 2*MaxURL, line)
			}
			if got := strings.TrimSuffix(r.Path+r.URL, "…"); c == "x" && (len(got) < MaxURL-10 || !strings.Contains(x.URL, got)) {
				t.Errorf("got the URL %.200s", r.Origin+r.Path+r.URL)
			}
		}
	}
}
