package proxy

import (
	"strconv"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy/internal/sfv"
)

func writeID(f *sfv.Field, s *signals) bool {
	f.Quoted(s.ID)
	return true
}

func writeDecision(f *sfv.Field, s *signals) bool {
	d := s.Decision
	if d == nil {
		return false
	}
	f.Token(verb(d.Allow))
	f.Param("reason")
	f.Token(string(d.Reason))
	f.TextParam("token", d.Token)
	f.TextParam("group", d.Group.Name())
	if d.Reason == policy.ByRule {
		f.Param("line")
		f.Integer(int64(d.Rule.Line))
		f.TextParam("rule", d.Rule.String())
	}
	if d.Reason == policy.ByUsage {
		reservedParams(f, d.Reserved)
	}
	f.TextParam("note", d.Note)
	f.TextParam("read-as", d.ReadAs)
	if !d.Allow && !d.Enforced {
		f.Param("enforced")
		f.False()
	}
	return true
}

func verb(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func writeSource(f *sfv.Field, s *signals) bool {
	d := s.Decision
	if d == nil || d.Robots == nil {
		return false
	}
	st := d.Robots
	f.Quoted(d.URL) // canonical
	if st.Snapshot.Status != 0 {
		f.Param("status")
		f.Integer(int64(st.Snapshot.Status))
	}
	f.Param("state")
	f.Token(string(st.State))
	f.Param("age")
	f.Integer(int64(st.Age / time.Second))
	if st.Snapshot.SHA256 != "" {
		f.Param("sha256")
		f.Quoted(st.Snapshot.SHA256)
	}
	if st.Snapshot.Cut {
		f.Flag("truncated")
	}
	return true
}

func writeDelay(f *sfv.Field, s *signals) bool {
	if s.Decision == nil {
		return false
	}
	delay, line, ok := s.Decision.Group.CrawlDelay()
	if p := &s.Paced; *p != (Paced{}) && (p.Refused || p.Source != ByMinDelay || !p.Announced) {
		writePaced(f, p)
		return true
	}
	if !ok {
		return false
	}
	f.Decimal(delay)
	f.Param("line")
	f.Integer(int64(line))
	return true
}

// writePaced says what set the pace of a request, and whether it was held or refused.
func writePaced(f *sfv.Field, p *Paced) {
	f.Decimal(rounded(p.Delay))
	if p.Source != "" {
		f.Param("src")
		f.Token(string(p.Source))
	}
	if p.Line > 0 {
		f.Param("line")
		f.Integer(int64(p.Line))
	}
	switch {
	case p.Refused && p.Reported:
		f.Flag("would-refuse")
	case p.Reported:
		f.Param("would-hold")
		f.Decimal(rounded(p.Held))
	case p.Refused:
		f.Param("retry")
		f.Decimal(rounded(p.Retry))
	default:
		f.Param("held")
		f.Decimal(rounded(p.Held))
	}
}

// rounded returns a duration in seconds, to the millisecond.
func rounded(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func writeTags(f *sfv.Field, s *signals) bool {
	tagMembers(f, s.Tags, false)
	tagMembers(f, s.Remembered, true)
	return len(s.Tags)+len(s.Remembered) > 0
}

// tagMembers appends one member for each rule and source.
func tagMembers(f *sfv.Field, rules []robotstag.Rule, remembered bool) {
	for _, r := range rules {
		f.Member()
		f.Token(r.Name)
		if r.Name == "unavailable_after" {
			f.Param("v")
			f.Date(time.Unix(r.Time, 0)) // 0 is a date too
		} else if r.Value != "" {
			f.Param("v")
			if n, err := strconv.ParseInt(r.Value, 10, 64); err == nil {
				f.Integer(n)
			} else {
				f.Token(r.Value)
			}
		}
		f.Param("src")
		f.Token(string(r.Source))
		f.TextParam("scope", r.Scope)
		if remembered {
			f.Flag("remembered")
		}
	}
}

func writeMeta(f *sfv.Field, s *signals) bool {
	h := s.Head
	if h.State == "" {
		return false
	}
	f.Token(h.State)
	if h.Why != "" {
		f.Param("why")
		f.Token(h.Why)
	}
	switch h.State {
	case "complete", "partial":
		f.Param("bytes")
		f.Integer(h.Bytes)
	case "remembered":
		f.Param("age")
		f.Integer(int64(h.Age / time.Second))
	}
	if h.Cut {
		f.Flag("truncated")
	}
	return true
}
