package response

import (
	"strconv"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/header"
)

// The fields that the gate adds to responses. All are structured fields (RFC 9651).
const (
	headerDecision = "Robots-Gate-Decision"
	headerSource   = "Robots-Gate-Source"
	headerTags     = "Robots-Gate-Tags"
	headerMeta     = "Robots-Gate-Meta"
	headerDelay    = "Robots-Gate-Delay"
	headerBudget   = "Robots-Gate-Budget"
	headerID       = "Robots-Gate-Id"
	headerUsage    = "Robots-Gate-Usage"
	headerLicense  = "Robots-Gate-License"
)

func writeID(f *header.Field, s *Signals) bool {
	f.Quoted(s.ID)
	return true
}

func writeDecision(f *header.Field, s *Signals) bool {
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

func writeSource(f *header.Field, s *Signals) bool {
	d := s.Decision
	if d == nil || d.Robots == nil {
		return false
	}
	st := d.Robots
	f.Quoted(d.RobotsURL) // canonical
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
	if st.Snapshot.HTML {
		f.Flag("html")
	}
	return true
}

func writeDelay(f *header.Field, s *Signals) bool {
	if s.Decision == nil {
		return false
	}
	delay, line, ok := s.Decision.Group.CrawlDelay()
	if p := &s.Paced; p.delays() && (p.Refused || p.Source != pace.ByMinDelay || !p.Announced) {
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
func writePaced(f *header.Field, p *Paced) {
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

// writeBudget says what is left of the budget that counts the request.
func writeBudget(f *header.Field, s *Signals) bool {
	b := s.Paced.Budget
	if b.Starts == 0 {
		return false
	}
	f.Integer(int64(b.Left))
	f.Param("of")
	f.Integer(int64(b.Starts))
	f.Param("window")
	f.Integer(int64(b.Window / time.Second))
	if b.Refused && s.Paced.Reported {
		f.Flag("would-refuse")
	}
	return true
}

// rounded returns a duration in seconds, to the millisecond.
func rounded(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func writeTags(f *header.Field, s *Signals) bool {
	tagMembers(f, s.Tags, false)
	tagMembers(f, s.Remembered, true)
	return len(s.Tags)+len(s.Remembered) > 0
}

// tagMembers appends one member for each rule and source.
func tagMembers(f *header.Field, rules []robotstag.Rule, remembered bool) {
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

func writeMeta(f *header.Field, s *Signals) bool {
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

// maxUsageField bounds Robots-Gate-Usage and Robots-Gate-License, in bytes: a robots.txt has room for
// thousands of statements, and common clients accept 16 KiB of header fields in all.
const maxUsageField = 6 << 10

// writeUsage appends one member for each preference. If they get longer than maxUsageField, it appends one for each
// category and value instead, so that no reservation is left out. found reports whether it has appended any.
func writeUsage(f *header.Field, s *Signals) (found bool) {
	for _, p := range s.Stated.Preferences {
		preferenceMember(f, p)
		if f.Len() > maxUsageField {
			f.Reset()
			firstPreferences(f, s.Stated.Preferences)
			break
		}
	}
	return f.Len() > 0
}

// firstPreferences appends the first preference for each category and value.
func firstPreferences(f *header.Field, all []usage.Preference) {
	type statement struct{ category, value string }
	seen := map[statement]bool{}
	for _, p := range all {
		if key := (statement{p.Category, p.Value()}); !seen[key] && f.Len() <= maxUsageField {
			seen[key] = true
			preferenceMember(f, p)
		}
	}
}

// preferenceMember appends a preference, unless its category is not a Token: a label from the network
// must not make the whole field invalid.
func preferenceMember(f *header.Field, p usage.Preference) {
	if !header.IsToken(p.Category) {
		return
	}
	f.Member()
	f.Token(p.Category)
	f.Param("v")
	f.Token(p.Value())
	sourceParams(f, p.Source, p.In, p.Line)
}

// sourceParams says where a preference or a licence was read.
func sourceParams(f *header.Field, source usage.Source, in usage.Place, line int) {
	f.Param("src")
	f.Token(string(source))
	f.Param("in")
	f.Token(string(in))
	if line > 0 {
		f.Param("line")
		f.Integer(int64(line))
	}
}

// reservedParams says which preference denies a request. The zero value of by means that the page could
// not be read whole.
func reservedParams(f *header.Field, by usage.Preference) {
	if !header.IsToken(by.Category) {
		f.Flag("unread")
		return
	}
	f.Param("use")
	f.Token(by.Category)
	sourceParams(f, by.Source, by.In, by.Line)
}

// writeLicense appends one member for each licence, within the bound.
func writeLicense(f *header.Field, s *Signals) (found bool) {
	for _, l := range s.Stated.Licenses {
		if !header.IsPrintable(l.URL) || f.Len()+len(l.URL) > maxUsageField {
			continue
		}
		f.Member()
		f.Quoted(l.URL)
		sourceParams(f, l.Source, l.In, l.Line)
		found = true
	}
	return found
}
