package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const text = "User-agent: *\nDisallow: /private/\n"

// kept is evidence that is kept.
type kept struct {
	config  policy.Config
	history []snapshot.Answer // of robots.txt
	origin  string            // of the history; empty: any
	tdmrep  []snapshot.Answer // the history of tdmrep.json
	bodies  map[string]string
	err     error // of configurations
}

func (s *kept) Configuration(digest string) ([]byte, error) {
	if digest != "config" {
		return nil, fs.ErrNotExist
	}
	return nil, s.err
}

func (s *kept) History(origin string) ([]snapshot.Answer, error) {
	if s.origin != "" && s.origin != origin {
		return nil, nil
	}
	return s.history, nil
}

func (s *kept) TDMRepHistory(string) ([]snapshot.Answer, error) { return s.tdmrep, nil }

func (s *kept) Body(_, digest string) (string, error) {
	body, ok := s.bodies[digest]
	switch {
	case !ok:
		return "", fs.ErrNotExist
	case snapshot.Digest(body) != digest:
		return "", fmt.Errorf("%s: %w", digest, snapshot.ErrChanged)
	}
	return body, nil
}

// replayer returns a Replayer by this evidence.
func (s *kept) replayer() *Replayer {
	return New(s, func([]byte) (*policy.Config, error) { return &s.config, nil })
}

func good(body string, fetched time.Time) *snapshot.Snapshot {
	return &snapshot.Snapshot{Status: 200, SHA256: snapshot.Digest(body), Fetched: fetched, Lifetime: -1}
}

// one returns evidence, and the entry of a denial that it confirms.
func one() (*kept, *record.Record) {
	news := &policy.Crawler{Name: "news", Tokens: []string{"NewsBot", "ExampleBot"}, Mode: policy.Enforce}
	s := &kept{
		config: policy.Config{
			Crawlers: policy.Crawlers{Known: []*policy.Crawler{news}, Default: &policy.Crawler{Name: "default"}},
			Robots:   policy.Robots{Settings: snapshot.Settings{MaxAge: time.Hour, StaleFor: time.Hour, Timeout: time.Second, MaxBytes: 500 << 10}},
		},
		bodies: map[string]string{snapshot.Digest(text): text},
	}
	last := good(text, noon)
	later := *last
	later.Fetched = noon.Add(30 * time.Minute)
	s.history = []snapshot.Answer{{From: noon, To: noon.Add(40 * time.Minute), Snapshot: &later}}
	target, _ := canonical.ParseURL("http://a.example/private/x?q=1")
	d, ok := s.config.Replay(policy.PastRequest{
		Target: target, Crawler: news, Tokens: news.Tokens, Asked: noon.Add(time.Minute), Judged: noon.Add(time.Minute), Answer: last, Good: last,
		Rules: func(string) *robotstxt.File { return robotstxt.Parse([]byte(text), 0) },
	})
	if !ok {
		panic("it can't be decided")
	}
	r := &record.Record{ID: "ID", Crawler: "news", Method: "GET", Origin: target.Origin(), Path: target.Path, Config: "config"}
	d.Record(r)
	r.Time = r.Decided
	return s, r
}

// at sets the times of an entry's decision.
func at(r *record.Record, t time.Time) {
	r.Time, r.Decided, r.Robots.Judged = t, t, t
	r.Robots.Age = int64(t.Sub(r.Robots.Fetched) / time.Second)
}

func TestReplay(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*kept, *record.Record)
		want   Outcome
		why    string
	}{
		{"as it was", func(*kept, *record.Record) {}, Same, ""},
		{"no decision", func(_ *kept, r *record.Record) { r.Decision = "" }, NoDecision, ""},
		{"redacted", func(_ *kept, r *record.Record) { r.Redacted = true }, Gone, "query"},
		{"no configuration", func(_ *kept, r *record.Record) { r.Config = "" }, Gone, ""},
		{"a changed configuration", func(s *kept, _ *record.Record) { s.err = snapshot.ErrChanged }, Changed, ""},
		{"a configuration that can't be read", func(s *kept, _ *record.Record) { s.err = errors.New("no") }, Changed, ""},
		{"no snapshot", func(s *kept, _ *record.Record) { clear(s.bodies) }, Gone, snapshot.Digest(text)},
		{"a changed snapshot", func(s *kept, _ *record.Record) { s.bodies[snapshot.Digest(text)] = "x" }, Changed, ""},

		{"another decision", func(_ *kept, r *record.Record) { r.Decision = "allow" }, Different, "recorded allow rule line 2: Disallow: /private/"},
		{"report mode", func(_ *kept, r *record.Record) { r.Enforced = new(bool) }, Different, "recorded deny (report mode) rule"},
		{"another line", func(_ *kept, r *record.Record) { r.Line = 3 }, Different, "line 3"},
		{"another rule", func(_ *kept, r *record.Record) { r.Rule = "Disallow: /" }, Different, ""},
		{"another path", func(_ *kept, r *record.Record) { r.Path = "/public" }, Different, "now allow no-match"},
		{"another group", func(_ *kept, r *record.Record) { r.Group = "newsbot" }, Different, ""},
		{"another reason", func(_ *kept, r *record.Record) { r.Reason = string(policy.ByOverride) }, Different, ""},
		{"another state", func(_ *kept, r *record.Record) { r.Robots.State = string(snapshot.Stale) }, Different, "stale"},
		{"another address", func(_ *kept, r *record.Record) { r.Robots.URL = "http://b.example/robots.txt" }, Different, "not the robots.txt of http://a.example"},
		{"other tokens", func(_ *kept, r *record.Record) { r.Tokens = []string{"Other"} }, Different, "product tokens"},
		{"an unknown crawler", func(_ *kept, r *record.Record) { r.Crawler = "\x1bred" }, Different, "has no crawler"},
		{"a path that is none", func(_ *kept, r *record.Record) { r.Path = "/a/../b" }, Different, "URL"},
		{"no evidence", func(_ *kept, r *record.Record) { r.Robots = nil }, Different, "no override decides"},
		{"an override came", func(s *kept, _ *record.Record) {
			s.config.Overrides = []policy.Override{{Action: policy.Allow, Reason: "contract"}}
		}, Same, ""}, // the override is for all hosts
		{"report mode then", func(s *kept, _ *record.Record) { s.config.Crawlers.Known[0].Mode = policy.Report }, Different, "now deny (report mode) rule"},

		{"fetched before it was there", func(_ *kept, r *record.Record) {
			r.Robots.Fetched = noon.Add(-time.Second)
			at(r, r.Decided)
		}, Gone, ""},
		{"fetched after it was last seen", func(_ *kept, r *record.Record) {
			r.Robots.Fetched = noon.Add(31 * time.Minute)
			at(r, noon.Add(31*time.Minute))
		}, Gone, ""},
		{"confirmed", func(_ *kept, r *record.Record) {
			r.Robots.Fetched = noon.Add(30 * time.Minute)
			at(r, noon.Add(35*time.Minute))
		}, Same, ""},
		{"used after another took its place", func(_ *kept, r *record.Record) { at(r, noon.Add(50*time.Minute)) }, Gone, "in force at 2026-01-01T12:50:00Z"},
		{"while the next was under way", func(_ *kept, r *record.Record) {
			at(r, noon.Add(40*time.Minute+2*time.Second))
		}, Same, ""},
		{"of a month later", func(_ *kept, r *record.Record) { r.Time = r.Time.AddDate(0, 1, 0) }, Different, "don't fit together: time 2026-02-01T12:01:00Z, decided 2026-01-01T12:01:00Z"},
		{"of a month before", func(_ *kept, r *record.Record) { r.Time = r.Time.AddDate(0, -1, 0) }, Different, "time 2025-12-01T12:01:00Z, decided"},
		{"without a time", func(_ *kept, r *record.Record) { r.Time = time.Time{} }, Different, "time 0001-01-01T00:00:00Z, decided"},
		{"as of no time", func(_ *kept, r *record.Record) { r.Decided = time.Time{} }, Different, "decided 0001-01-01T00:00:00Z"},
		{"of an earlier time", func(_ *kept, r *record.Record) { // cites the answer that was in force before
			r.Time, r.Decided = noon.Add(50*time.Minute), noon.Add(50*time.Minute)
		}, Different, "decided 2026-01-01T12:50:00Z, judged 2026-01-01T12:01:00Z"},
		{"judged long after", func(_ *kept, r *record.Record) {
			r.Robots.Judged, r.Robots.Age = noon.Add(2*time.Minute), 120
		}, Different, "decided 2026-01-01T12:01:00Z, judged 2026-01-01T12:02:00Z"},
		{"judged before it was fetched", func(_ *kept, r *record.Record) {
			at(r, noon.Add(-time.Minute))
			r.Robots.Age = 0
		}, Different, "fetched 2026-01-01T12:00:00Z, judged 2026-01-01T11:59:00Z"},
		{"before a copy was fetched", func(_ *kept, r *record.Record) {
			r.Robots.Copy = &record.Answer{Status: 200, Fetched: noon.Add(time.Hour)}
		}, Different, "fetched 2026-01-01T13:00:00Z, judged"},
		{"another age", func(_ *kept, r *record.Record) { r.Robots.Age = 77777 }, Different, "age 77777, from fetched to judged it is 60 s"},
		{"an age that can't be", func(_ *kept, r *record.Record) { r.Robots.Age = -1 << 63 }, Different, "age -9223372036854775808,"},
		{"no age", func(_ *kept, r *record.Record) { r.Robots.Age = 0 }, Different, "age 0,"},
		{"after a login and a fetch", func(_ *kept, r *record.Record) {
			r.Time = r.Time.Add(-10 * time.Second)
			r.Decided = r.Decided.Add(-3 * time.Second)
		}, Same, ""},
		{"while the clock was set right", func(_ *kept, r *record.Record) {
			r.Time = r.Time.Add(time.Second)
		}, Same, ""},

		{"a 206, which earlier versions obeyed", func(s *kept, r *record.Record) {
			r.Robots.Status, s.history[0].Snapshot.Status = 206, 206
		}, Different, "now deny unreachable"},

		{"no history", func(s *kept, _ *record.Record) { s.history = nil }, Gone, ""},
		{"a file of another origin", func(s *kept, r *record.Record) {
			s.bodies[snapshot.Digest("")] = ""
			r.Robots.SHA256 = snapshot.Digest("")
			r.Decision, r.Reason, r.Rule, r.Line, r.Group, r.Token = "allow", string(policy.NoGroup), "", 0, "", "NewsBot"
		}, Gone, "no robots.txt of status 200 " + snapshot.Digest("")},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, r := one()
			test.change(s, r)
			got, why := s.replayer().Replay(r)
			if got != test.want || !strings.Contains(why, test.why) {
				t.Errorf("got %s: %s; want %s: %s", got, why, test.want, test.why)
			}
		})
	}
}

// TestCutTexts: an entry with the beginnings of its texts is confirmed.
func TestCutTexts(t *testing.T) {
	s, r := one()
	long := "/private/" + strings.Repeat("x", 2000)
	body := "User-agent: *\nDisallow: " + long + "\n"
	answer := good(body, noon)
	s.bodies, s.history = map[string]string{answer.SHA256: body}, []snapshot.Answer{{From: noon, Snapshot: answer}}
	r.Path, r.Rule, r.Robots.SHA256 = long, "Disallow: "+long, answer.SHA256
	bounded := *r
	bounded.Bound()
	other := bounded
	other.Rule = "Disallow: /y" + other.Rule[12:]
	for _, test := range []struct {
		name string
		r    *record.Record
		want Outcome
	}{{"cut", &bounded, Same}, {"another rule", &other, Different}} {
		if got, why := s.replayer().Replay(test.r); got != test.want {
			t.Errorf("%s: got %s, want %s: %s", test.name, got, test.want, why)
		}
	}
	if bounded.Rule == r.Rule {
		t.Errorf("a rule of %d bytes is not cut", len(r.Rule))
	}
}

// TestWithoutRules replays decisions by failures, and by copies that are used during failures.
func TestWithoutRules(t *testing.T) {
	failed := func(status int) *snapshot.Snapshot {
		return &snapshot.Snapshot{Status: status, Fetched: noon.Add(time.Minute), Since: noon.Add(time.Minute), Failures: 1, Lifetime: -1}
	}
	for _, test := range []struct {
		name   string
		answer *snapshot.Snapshot
		good   *snapshot.Snapshot
		after  time.Duration
		want   string
	}{
		{"a 404", failed(404), nil, 0, "allow unavailable, token NewsBot, robots.txt unavailable 404"},
		{"a 503", failed(503), nil, 0, "deny unreachable, token NewsBot, robots.txt unreachable 503"},
		{"no answer", failed(0), nil, 0, "deny unreachable, token NewsBot, robots.txt unreachable"},
		{"a copy that is fresh", failed(503), good(text, noon), 0, "deny rule line 2: Disallow: /private/, group *, token NewsBot, robots.txt fresh " + snapshot.Digest(text)},
		{"a stale copy", failed(503), good(text, noon), 90 * time.Minute, "deny rule line 2: Disallow: /private/, group *, token NewsBot, robots.txt stale " + snapshot.Digest(text)},
		{"after stale_for", failed(503), good(text, noon), 4 * time.Hour, "deny unreachable, token NewsBot, robots.txt unreachable 503"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := one()
			s.config.Robots.StaleFor = 3 * time.Hour
			s.history = nil
			for _, kept := range []*snapshot.Snapshot{test.answer, test.good} {
				if kept != nil {
					s.history = append(s.history, snapshot.Answer{From: kept.Fetched, Snapshot: kept})
				}
			}
			target, _ := canonical.ParseURL("http://a.example/private/x")
			news := s.config.Crawlers.Known[0]
			at := noon.Add(time.Minute + test.after)
			d, ok := s.config.Replay(policy.PastRequest{
				Target: target, Crawler: news, Tokens: news.Tokens, Asked: at, Judged: at, Answer: test.answer, Good: test.good,
				Rules: func(string) *robotstxt.File { return robotstxt.Parse([]byte(text), 0) },
			})
			if !ok {
				t.Fatal("it can't be decided")
			}
			r := &record.Record{Crawler: "news", Method: "GET", Origin: target.Origin(), Path: target.Path, Config: "config"}
			d.Record(r)
			r.Time = at
			if got := describe(r); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got, why := s.replayer().Replay(r); got != Same {
				t.Errorf("again: %s: %s", got, why)
			}
			// Without the failure in the history the copy proves nothing.
			s.history = s.history[1:]
			if got, why := s.replayer().Replay(r); got != Gone {
				t.Errorf("without the answer: %s: %s", got, why)
			}
		})
	}
}
