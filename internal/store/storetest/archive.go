package storetest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
)

// TestArchive checks the promises of snapshot.Archive. Open returns an empty store with room for at least a megabyte, and
// the archive of what it is given. Both are used until the end of the test.
func TestArchive(t *testing.T, open func(t *testing.T) (snapshot.Store, snapshot.Archive)) {
	for name, test := range map[string]func(*testing.T, snapshot.Store, snapshot.Archive){
		"answers":      testAnswers,
		"clock":        testClockSetBack,
		"scopes":       testScopes,
		"forgotten":    testForgotten,
		"bodies":       testBodies,
		"host origins": testHostOrigins,
	} {
		t.Run(name, func(t *testing.T) {
			s, a := open(t)
			test(t, s, a)
		})
	}
}

var began = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func hour(n int) time.Time { return began.Add(time.Duration(n) * time.Hour) }

// fetched returns the set of an origin that has answered with a body.
func fetched(at time.Time, body string) snapshot.Set {
	s := &snapshot.Snapshot{Status: 200, Fetched: at, SHA256: snapshot.Digest(body)}
	return snapshot.Set{Good: s, Last: s, Body: []byte(body)}
}

// failing returns set after its origin has failed. The text of the error is another one each time.
func failing(set snapshot.Set, at time.Time, status int) snapshot.Set {
	set.Last = &snapshot.Snapshot{Status: status, Error: fmt.Sprint("at ", at), Fetched: at}
	return set
}

// brief returns a line for each answer: its beginning and its end in hours after began, its body or status, and
// the hour of the last fetch.
func brief(t *testing.T, a snapshot.Archive, origin string, answers []snapshot.Answer, err error) (lines []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	number := func(at time.Time) string {
		if at.IsZero() {
			return "now"
		}
		return fmt.Sprint(int(at.Sub(began).Hours()))
	}
	for _, each := range answers {
		what := fmt.Sprint(each.Snapshot.Status)
		if digest := each.Snapshot.SHA256; digest != "" {
			if what, err = a.Body(origin, digest); err != nil {
				t.Errorf("the body of an answer: %v", err)
			}
		}
		if each.Asker != "" {
			what += " for " + each.Asker
		}
		lines = append(lines, fmt.Sprintf("%s-%s %s, last at %s", number(each.From), number(each.To), what, number(each.Snapshot.Fetched)))
	}
	return lines
}

func checkHistory(t *testing.T, a snapshot.Archive, origin string, want ...string) {
	t.Helper()
	answers, err := a.History(origin)
	if got := brief(t, a, origin, answers, err); !slices.Equal(got, want) {
		t.Errorf("%s: got\n\t%s\nwant\n\t%s", origin, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// testAnswers: the history has every answer with the time at which it was in force. A confirmation is no other answer,
// nor is the same failure.
func testAnswers(t *testing.T, s snapshot.Store, a snapshot.Archive) {
	const origin = "https://a.example"
	one, two := fetched(hour(0), "one"), fetched(hour(10), "two")
	confirmed := func(n int) snapshot.Set { return fetched(hour(n), "one") }
	for n, set := range []snapshot.Set{
		one,
		confirmed(1),
		failing(confirmed(1), hour(2), 403),
		failing(confirmed(1), hour(4), 503),
		failing(confirmed(1), hour(5), 503),
		failing(confirmed(1), hour(6), 404),
		confirmed(7),
		failing(confirmed(7), hour(9), 0),
		two,
		fetched(hour(11), "one"),
		failing(fetched(hour(12), "one"), hour(14), 503), // two fetches before a save
	} {
		other := fetched(hour(n), fmt.Sprint("other ", n))
		save(t, s, map[string]snapshot.Set{origin: set, origin + ".com": other, "https://a": other})
	}
	checkHistory(t, a, origin,
		"0-10 one, last at 7",
		"2-4 403, last at 2",
		"4-6 503, last at 5",
		"6-7 404, last at 6",
		"9-10 0, last at 9",
		"10-11 two, last at 10",
		"11-now one, last at 12",
		"14-now 503, last at 14",
	)
	checkHistory(t, a, "https://unknown.example")
}

// testClockSetBack: no answer ends before it begins, and none is lost.
func testClockSetBack(t *testing.T, s snapshot.Store, a snapshot.Archive) {
	const origin = "https://a.example"
	for i, n := range []int{5, 4, 5, 5, 5} {
		save(t, s, map[string]snapshot.Set{origin: fetched(hour(n), fmt.Sprint(i))})
	}
	answers, err := a.History(origin)
	if err != nil || len(answers) != 5 {
		t.Errorf("got %v, %v", answers, err)
	}
	for _, each := range answers {
		if !each.To.IsZero() && each.To.Before(each.From) {
			t.Errorf("from %v to %v", each.From, each.To)
		}
	}
}

// testScopes: the history has the answers for all askers, also for one that is forgotten. That of the tdmrep.json is a
// history of its own.
func testScopes(t *testing.T, s snapshot.Store, a snapshot.Archive) {
	const origin = "https://a.example"
	for n, word := range []string{"old", "new"} {
		sets := map[string]snapshot.Set{}
		for i, scope := range []snapshot.Scope{
			{Origin: origin, Asker: "a"}, {Origin: origin, Asker: "Bot/1.0 (b)"}, {Origin: origin, TDMRep: true, Asker: "a"}, {Origin: origin, TDMRep: true, Asker: "Bot/1.0 (b)"},
		} {
			sets[scope.Key()] = fetched(hour(4*n+i), fmt.Sprint(word, " ", i))
			scope.Origin += ".com"
			sets[scope.Key()] = fetched(hour(n), "other")
		}
		save(t, s, sets)
	}
	checkHistory(t, a, origin, "0-4 old 0 for a, last at 0", "1-5 old 1 for Bot/1.0 (b), last at 1", "4-now new 0 for a, last at 4", "5-now new 1 for Bot/1.0 (b), last at 5")
	files, err := a.TDMRepHistory(origin)
	want := []string{"2-6 old 2 for a, last at 2", "3-7 old 3 for Bot/1.0 (b), last at 3", "6-now new 2 for a, last at 6", "7-now new 3 for Bot/1.0 (b), last at 7"}
	if got := brief(t, a, origin, files, err); !slices.Equal(got, want) {
		t.Errorf("tdmrep.json: got %q, want %q", got, want)
	}
	gone := snapshot.Scope{Origin: origin, Asker: "a"}.Key()
	for range 2 {
		save(t, s, map[string]snapshot.Set{gone: {}})
	}
	if all, err := a.History(origin); err != nil || len(all) != 4 || all[2].Asker != "a" || all[2].To.IsZero() {
		t.Errorf("a set is forgotten: got %+v, %v", all, err)
	}
}

// testForgotten: the answers of a forgotten set stay in the history, with an end.
func testForgotten(t *testing.T, s snapshot.Store, a snapshot.Archive) {
	const origin = "https://a.example"
	save(t, s, map[string]snapshot.Set{origin: failing(fetched(hour(0), "one"), hour(2), 503)})
	save(t, s, map[string]snapshot.Set{origin: {}})
	all, err := a.History(origin)
	if err != nil || len(all) != 2 {
		t.Errorf("got %v, %v; want 2 answers", all, err)
	}
	for _, each := range all {
		if since := time.Since(each.To); since < 0 || since > time.Hour {
			t.Errorf("it ends at %v, want now", each.To)
		}
	}
	if body, err := a.Body(origin, snapshot.Digest("one")); body != "one" || err != nil {
		t.Errorf("its body: got %q, %v", body, err)
	}
}

// testBodies: those of superseded answers are kept too. A name that is none is not found.
func testBodies(t *testing.T, s snapshot.Store, a snapshot.Archive) {
	bodies := []string{"", "\x00\xff not UTF-8", "one", strings.Repeat("# long\n", 50_000)}
	for n, body := range bodies {
		save(t, s, map[string]snapshot.Set{"https://a.example": fetched(hour(n), body)})
	}
	for _, want := range bodies {
		if got, err := a.Body("https://a.example", snapshot.Digest(want)); got != want || err != nil {
			t.Errorf("got %.20q, %v, want %.20q", got, err, want)
		}
	}
	twice := fetched(hour(10), "twice")
	twice.Last = new(*twice.Good)
	save(t, s, map[string]snapshot.Set{"https://a.example": twice})
	save(t, s, map[string]snapshot.Set{"https://a.example": fetched(hour(11), "other")})
	if got, err := a.Body("https://a.example", snapshot.Digest("twice")); got != "twice" {
		t.Errorf("the body of two equal answers: got %q, %v", got, err)
	}
	one := snapshot.Digest("one")
	for _, digest := range []string{"", "x", "../../../../../../etc/passwd", snapshot.Digest("unknown"), strings.ToUpper(one), one[:16], one[:16] + strings.Repeat("0", 48)} {
		if body, err := a.Body("https://a.example", digest); err == nil || body != "" && !errors.Is(err, snapshot.ErrChanged) {
			t.Errorf("%q: got %q, %v", digest, body, err)
		}
	}
	for _, digest := range []string{"", "../../../../../../etc/passwd", snapshot.Digest("unknown")} {
		if _, err := a.Body("https://a.example", digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %v, want fs.ErrNotExist", digest, err)
		}
	}
}

// testHostOrigins lists the origins of a host on all ports, each once, but not those of longer names.
func testHostOrigins(t *testing.T, s snapshot.Store, a snapshot.Archive) {
	for n, body := range []string{"old", "new"} {
		sets := map[string]snapshot.Set{}
		for _, origin := range []string{"https://a.example", "http://a.example:8080", "https://a.example.com", "https://b.a.example", "https://[2001:db8::1]", "https://[2001:db8::1]:8443"} {
			sets[origin] = fetched(hour(n), body)
		}
		sets[snapshot.Scope{Origin: "http://a.example", Asker: "Bot"}.Key()] = fetched(hour(n), body)
		sets[snapshot.Scope{Origin: "https://a.example:444", TDMRep: true}.Key()] = fetched(hour(n), body)
		save(t, s, sets)
	}
	save(t, s, map[string]snapshot.Set{"http://a.example:8080": {}}) // its answers are history
	for host, want := range map[string][]string{
		"a.example":     {"http://a.example", "http://a.example:8080", "https://a.example", "https://a.example:444"},
		"b.a.example":   {"https://b.a.example"},
		"[2001:db8::1]": {"https://[2001:db8::1]", "https://[2001:db8::1]:8443"},
		"a.exampl":      nil,
		"example":       nil,
		"":              nil,
	} {
		if got, err := a.HostOrigins(host); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, want %q", host, got, err, want)
		}
	}
}
