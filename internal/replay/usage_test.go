package replay

import (
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

const (
	robotsUsage = "User-agent: *\nDisallow: /private/\nContent-Usage: search=y\nContent-Usage: /art/ train-ai=n, other=n\n"
	tdmrep      = `[{"location": "/books/", "tdm-reservation": 1}, {"location": "/open/", "tdm-reservation": 0}]`
)

// stated returns evidence with usage preferences, and the entry of a request that it confirms.
func stated(t *testing.T, path string) (*kept, *record.Record) {
	t.Helper()
	s, _ := one()
	s.config.Usage = policy.Usage{Reserved: policy.RefuseReserved, TDMRep: true}
	news := s.config.Crawlers.Known[0]
	news.Purposes = []usage.Purpose{usage.TrainAI}
	s.bodies = map[string]string{snapshot.Digest(robotsUsage): robotsUsage, snapshot.Digest(tdmrep): tdmrep}
	robots := good(robotsUsage, noon)
	s.history = []snapshot.Answer{{From: noon, Snapshot: robots}}
	s.tdmrep = []snapshot.Answer{{From: noon.Add(time.Minute), Snapshot: good(tdmrep, noon.Add(30*time.Minute))}}
	file, err := usage.ParseTDMRep([]byte(tdmrep))
	if err != nil {
		t.Fatal(err)
	}
	target, _ := canonical.ParseURL("http://a.example" + path)
	at := noon.Add(time.Minute)
	d, ok := s.config.Replay(policy.PastRequest{
		Target: target, Crawler: news, Tokens: news.Tokens, Asked: at, Judged: at, Answer: robots, Good: robots,
		Rules:  func(string) *robotstxt.File { return robotstxt.Parse([]byte(robotsUsage), 0) },
		TDMRep: &snapshot.Resolution{Snapshot: &snapshot.Snapshot{SHA256: snapshot.Digest(tdmrep)}, TDMRep: file},
	})
	if !ok {
		t.Fatal("it can't be decided")
	}
	r := &record.Record{ID: "ID", Crawler: "news", Method: "GET", Origin: target.Origin(), Path: target.Path, Config: "config", Usage: d.Stated.Details()}
	d.Record(r)
	r.Time = r.Decided
	return s, r
}

// byHead makes an entry that of a response with a head that reserves.
func byHead(r *record.Record) {
	by := usage.Detail{Use: "train-ai", Value: "n", Source: usage.RobotsTag, In: usage.InMeta}
	r.Usage = append(slices.Clone(r.Usage), by)
	r.Decision, r.Reason, r.Reserved, r.Rule, r.Line = "deny", string(string(policy.ByUsage)), &by, "", 0
}

// TestReplayUsage replays decisions by what robots.txt and tdmrep.json state.
func TestReplayUsage(t *testing.T) {
	other := usage.Detail{Use: "search", Value: "n", Source: usage.ContentUsage, In: usage.InRobots, Line: 3}
	for _, test := range []struct {
		name   string
		path   string
		change func(*kept, *record.Record)
		want   Outcome
		why    string
	}{
		{"stated", "/page", nil, Same, ""},
		{"reserved by robots.txt", "/art/x", nil, Same, ""},
		{"reserved by tdmrep.json", "/books/x", nil, Same, ""},
		{"in another reading", "//art/x", nil, Same, ""},
		{"disallowed", "/private/", nil, Same, ""},
		{"of an earlier version, which recorded no preferences", "/page", func(_ *kept, r *record.Record) { r.Usage = nil }, Same, ""},

		{"without the lists, which were too long", "/art/x", func(_ *kept, r *record.Record) { r.Usage, r.Cut = nil, true }, Same, ""},
		{"by a preference that was cut", "/page", func(_ *kept, r *record.Record) {
			byHead(r)
			r.Usage, r.Cut = nil, true
		}, Same, ""},

		{"let through", "/art/x", func(_ *kept, r *record.Record) {
			r.Decision, r.Reason, r.Reserved = "allow", string(policy.NoMatch), nil
		}, Different, "now deny usage: train-ai=n (content-usage, line 4)"},
		{"refused for nothing", "/page", func(_ *kept, r *record.Record) {
			r.Decision, r.Reason, r.Reserved = "deny", string(policy.ByUsage), &other
		}, Different, "recorded deny usage: search=n (content-usage, line 3)"},
		{"for another line", "/art/x", func(_ *kept, r *record.Record) { r.Reserved.Line = 3 }, Different, "line 3"},
		{"report mode", "/art/x", func(_ *kept, r *record.Record) { r.Enforced = new(bool) }, Different, "report mode"},
		{"a preference less", "/page", func(_ *kept, r *record.Record) {
			r.Usage[0] = usage.Detail{Use: "tdm", Value: "n", Source: usage.TDMRep, In: usage.InHeader}
		}, Different, "recorded usage , now search=y (content-usage, line 3)"},
		{"another preference", "/page", func(_ *kept, r *record.Record) { r.Usage = append(r.Usage, other) }, Different, "recorded usage search=y (content-usage, line 3), search=n"},
		{"without its tdmrep.json", "/books/x", func(_ *kept, r *record.Record) { r.TDMRep = "" }, Different, "now allow no-match"},
		{"an invented tdmrep.json", "/page", func(s *kept, r *record.Record) { s.config.Usage.TDMRep = false }, Different, ", tdmrep.json " + snapshot.Digest(tdmrep) + ", now"},
		{"another file for tdmrep.json", "/page", func(_ *kept, r *record.Record) { r.TDMRep = snapshot.Digest(robotsUsage) }, Different, "states nothing"},
		{"no tdmrep.json", "/page", func(s *kept, _ *record.Record) { delete(s.bodies, snapshot.Digest(tdmrep)) }, Gone, snapshot.Digest(tdmrep)},
		{"a changed tdmrep.json", "/page", func(s *kept, _ *record.Record) { s.bodies[snapshot.Digest(tdmrep)] = "[]" }, Changed, ""},
		{"of another origin", "/page", func(s *kept, _ *record.Record) { s.tdmrep = nil }, Gone, "no tdmrep.json"},
		{"of an earlier time", "/page", func(s *kept, _ *record.Record) { s.tdmrep[0].From, s.tdmrep[0].To = noon.Add(-time.Hour), noon }, Gone, ""},

		{"a response that states more", "/open/x", func(_ *kept, r *record.Record) {
			r.Usage = append(r.Usage, usage.Detail{Use: "ai-input", Value: "n", Source: usage.ContentUsage, In: usage.InHeader})
		}, Same, ""},
		{"a response that replaces what tdmrep.json states", "/open/x", func(_ *kept, r *record.Record) {
			r.Usage[1] = usage.Detail{Use: "tdm", Value: "y", Source: usage.TDMRep, In: usage.InMeta}
		}, Same, ""},
		{"refused by the response", "/page", func(_ *kept, r *record.Record) { byHead(r) }, Same, ""},
		{"refused because the head could not be read", "/page", func(_ *kept, r *record.Record) { byHead(r); r.Usage, r.Reserved = r.Usage[:1], nil }, Same, ""},
		{"refused by the response in report mode", "/page", func(s *kept, r *record.Record) {
			s.config.Crawlers.Known[0].Mode = policy.Report
			byHead(r)
			r.Enforced = new(bool)
		}, Same, ""},
		{"refused by the response in another mode", "/page", func(_ *kept, r *record.Record) { byHead(r); r.Enforced = new(bool) }, Different, "(report mode)"},
		{"refused by a response that would not have been asked for", "/art/x", func(_ *kept, r *record.Record) { byHead(r) }, Different, "now deny usage: train-ai=n (content-usage, line 4)"},
		{"refused by a response although reserved: annotate", "/page", func(s *kept, r *record.Record) { byHead(r); s.config.Usage.Reserved = policy.AnnotateReserved }, Different, ""},
		{"refused by a response for another purpose", "/page", func(s *kept, r *record.Record) {
			byHead(r)
			s.config.Crawlers.Known[0].Purposes = []usage.Purpose{usage.Search}
		}, Different, ""},
		{"refused by a response that does not state it", "/page", func(_ *kept, r *record.Record) { byHead(r); r.Usage = r.Usage[:1] }, Different, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, r := stated(t, test.path)
			if test.change != nil {
				test.change(s, r)
			}
			got, why := s.replayer().Replay(r)
			if got != test.want || !strings.Contains(why, test.why) {
				t.Errorf("got %s: %s; want %s: %s", got, why, test.want, test.why)
			}
		})
	}
}
