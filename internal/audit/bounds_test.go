package audit

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/record"
	"robotsgate/policy/usage"
)

// largest is a record with as much text in all members as clients and origins can send, and more.
func largest(c string) *record.Record {
	long := strings.Repeat(c, 100_000)
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	digest := strings.Repeat("a", 64)
	answer := record.Answer{Status: 503, SHA256: digest, Fetched: at, Since: at, Looped: true, HTML: true, Substitute: true, Lifetime: new(123456.789123)}
	origin := "https://" + strings.Repeat("a.", 126) + "a:65535"
	token := strings.Repeat("x", 1024)
	reserved := usage.Detail{Use: "train-ai", Value: "n", Source: usage.ContentSignal, In: usage.InWellKnown, Line: 1 << 30}
	x := &record.Record{
		ID: strings.Repeat("I", 26), Time: at, Client: "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Crawler: strings.Repeat("c", 60), Method: long, Tunnel: true, Socks: true,
		Origin: origin, Path: "/" + long, Status: 502, Bytes: 1 << 62, Duration: 123.456789123, Error: long, Refused: record.ByLimit, Cause: long,
		Signed: strings.Repeat("k", 43), Config: digest,
		Decision: "deny", Reason: "usage", Note: long, ReadAs: long, Token: token, Group: token, Decided: at, Rule: "Disallow: " + long, Line: 1 << 30, Reserved: &reserved,
		Robots: &record.Robots{URL: origin + "/robots.txt", State: "unreachable", Judged: at, Answer: answer, Instead: &answer, Copy: &answer}, TDMRep: digest,
	}
	for i := range 1000 {
		x.Tags = append(x.Tags, "unavailable_after="+at.Add(time.Duration(i)).String())
		x.Usage = append(x.Usage, usage.Detail{Use: strings.Repeat(c, 20), Value: "n", Source: usage.ContentSignal, In: usage.InWellKnown, Line: i})
		x.Licenses = append(x.Licenses, "https://a.example/"+strings.Repeat("l", 1000))
	}
	return x
}

// written returns the line of an entry in a log.
func written(t *testing.T, x *record.Record) (line []byte, r *record.Record) {
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
		if _, r := written(t, x); r.Origin+r.Path != x.Address() && c == "x" {
			t.Errorf("the URL of a decision was cut to %d bytes", len(r.Origin+r.Path))
		}
		x.Path = "/"
		if line, r := written(t, x); len(line) > record.Max || !r.Cut || len(r.Tags)+len(r.Usage)+len(r.Licenses) > 0 {
			t.Errorf("%q: a record with lists has %d bytes, cut %t, %d tags", c, len(line), r.Cut, len(r.Tags))
		}
		x.Tags, x.Usage, x.Licenses = x.Tags[:10], x.Usage[:10], nil
		if line, r := written(t, x); len(line) > record.Max || r.Cut || len(r.Tags) != 10 || len(r.Usage) != 10 {
			t.Errorf("%q: a record with short lists has %d bytes, cut %t, %d tags, %d preferences", c, len(line), r.Cut, len(r.Tags), len(r.Usage))
		}
		for _, parsed := range []bool{true, false} {
			full := largest(c)
			x := &record.Record{ID: full.ID, Time: full.Time, Client: full.Client, Crawler: full.Crawler, Method: full.Method, Origin: full.Origin, Path: full.Path, Error: full.Error, Refused: full.Refused}
			if !parsed {
				x.Origin, x.Path, x.URL = "", "", full.Address()
			}
			line, r := written(t, x)
			if len(line) > 2*record.MaxURL {
				t.Errorf("%q: an undecided record has %d bytes, want %d at most: %s", c, len(line), 2*record.MaxURL, line)
			}
			if got := strings.TrimSuffix(r.Path+r.URL, "…"); c == "x" && (len(got) < record.MaxURL-10 || !strings.Contains(x.Address(), got)) {
				t.Errorf("got the URL %.200s", r.Origin+r.Path+r.URL)
			}
		}
	}
}
