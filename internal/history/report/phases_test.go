package report

import (
	"slices"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
)

// TestPhases derives the phases from an origin's answers.
func TestPhases(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const a, b = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
	answer := func(status int, digest string, from, to time.Duration) snapshot.Answer {
		s := snapshot.Answer{From: start.Add(from), Snapshot: &snapshot.Snapshot{Status: status, SHA256: digest, Fetched: start.Add(from), Since: start.Add(from), Lifetime: -1}}
		if to > 0 {
			s.To = start.Add(to)
		}
		return s
	}
	const h = time.Hour
	for _, test := range []struct {
		name    string
		answers []snapshot.Answer
		want    []string
	}{
		{"one that stays", []snapshot.Answer{answer(200, a, 0, 0)}, []string{"0s " + a}},
		{"another", []snapshot.Answer{answer(200, a, 0, h), answer(200, b, h, 0)}, []string{"0s " + a, "1h0m0s " + b}},
		{"none for a while, then the same", []snapshot.Answer{answer(200, a, 0, 0), answer(404, "", h, 2*h)},
			[]string{"0s " + a, "1h0m0s no robots.txt (404): everything is allowed", "2h0m0s " + a}},
		{"none, then another", []snapshot.Answer{answer(200, a, 0, 2*h), answer(404, "", h, 2*h), answer(200, b, 2*h, 0)},
			[]string{"0s " + a, "1h0m0s no robots.txt (404): everything is allowed", "2h0m0s " + b}},
		{"unreachable, and the copy stands in", []snapshot.Answer{answer(200, a, 0, 0), answer(503, "", h, 20*h)}, []string{"0s " + a}},
		{"unreachable for longer than that", []snapshot.Answer{answer(200, a, 0, 0), answer(503, "", h, 200*h)},
			[]string{"0s " + a, "72h0m0s unreachable (503): everything is denied", "200h0m0s " + a}},
		{"unreachable from the beginning", []snapshot.Answer{answer(0, "", 0, h), answer(200, a, h, 0)},
			[]string{"0s unreachable: everything is denied", "1h0m0s " + a}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := snapshot.Settings{MaxAge: 24 * h, StaleFor: 72 * h, AfterStale: "disallow", Unavailable: "allow"}
			var got []string
			for _, v := range phasesOf(test.answers, &rules, start.Add(1000*h)) {
				got = append(got, v.at.Sub(start).String()+" "+v.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
