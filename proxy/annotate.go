package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy/internal/sfv"
)

// The names that the gate adds to responses. All are RFC 9651 structured fields.
const (
	headerDecision = "Robots-Gate-Decision"
	headerSource   = "Robots-Gate-Source"
	headerTags     = "Robots-Gate-Tags"
	headerMeta     = "Robots-Gate-Meta"
	headerDelay    = "Robots-Gate-Delay"
	headerID       = "Robots-Gate-Id"

	ownPrefix   = "Robots-Gate-"
	proxyStatus = "Proxy-Status" // RFC 9209
	gateName    = "robotsgate"   // ours among its members
)

// annotate says in a response's headers what was decided about its request and
// which robots rules bind the crawler.
func annotate(h http.Header, x *exchange) {
	f := sfv.New()
	h[headerID] = []string{x.idField}
	if d := x.Decision; d != nil {
		decisionField(f, d)
		f.Set(h, headerDecision)
		if d.Robots != nil {
			sourceField(f, d)
			f.Set(h, headerSource)
		}
		if delay, line, ok := d.Group.CrawlDelay(); ok {
			f.Decimal(delay)
			f.Param("line")
			f.Integer(int64(line))
			f.Set(h, headerDelay)
		}
	}
	if len(x.Tags)+len(x.Remembered) > 0 {
		tagMembers(f, x.Tags, false)
		tagMembers(f, x.Remembered, true)
		f.Set(h, headerTags)
	}
	if x.Head.State != "" {
		x.Head.field(f)
		f.Set(h, headerMeta)
	}
}

func decisionField(f *sfv.Field, d *policy.Decision) {
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
	f.TextParam("note", d.Note)
	f.TextParam("read-as", d.ReadAs)
	if !d.Allow && !d.Enforced {
		f.Param("enforced")
		f.False()
	}
}

func verb(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func sourceField(f *sfv.Field, d *policy.Decision) {
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
}

// tagMembers appends one member for each rule and source.
func tagMembers(f *sfv.Field, rules []robotstag.Rule, remembered bool) {
	for _, r := range rules {
		f.Member()
		f.Token(r.Name)
		if n, err := strconv.ParseInt(r.Value, 10, 64); err == nil {
			f.Param("v")
			f.Integer(n)
		} else if r.Name == "unavailable_after" {
			f.Param("v")
			f.Date(time.Unix(r.Time, 0)) // 0 is a date too
		} else if r.Value != "" {
			f.Param("v")
			f.Token(r.Value)
		}
		f.Param("src")
		f.Token(string(r.Source))
		f.TextParam("scope", r.Scope)
		if remembered {
			f.Flag("remembered")
		}
	}
}

func (h Head) field(f *sfv.Field) {
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
}

// dropOwn removes what only the gate may say: its own headers, and its members
// of Proxy-Status.
func dropOwn(h http.Header) {
	for name := range h {
		// Some read an underscore as a hyphen (RFC 3875, 4.1.18).
		if len(name) >= len(ownPrefix) && strings.EqualFold(strings.ReplaceAll(name[:len(ownPrefix)], "_", "-"), ownPrefix) {
			delete(h, name)
		}
	}
	if lines := h[proxyStatus]; len(lines) > 0 {
		if kept := othersStatus(lines); kept != "" {
			h[proxyStatus] = []string{kept}
		} else {
			delete(h, proxyStatus)
		}
	}
}

// othersStatus returns the members of a Proxy-Status that are not the gate's. A
// field that can't be read says nothing to anybody (RFC 9651, 4.2), so it goes.
func othersStatus(lines []string) string {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return ""
	}
	var kept httpsfv.List
	for _, m := range list {
		if i, ok := m.(httpsfv.Item); ok && (i.Value == httpsfv.Token(gateName) || i.Value == gateName) {
			continue
		}
		kept = append(kept, m)
	}
	if len(kept) == 0 {
		return ""
	}
	s, _ := httpsfv.Marshal(kept)
	return s
}

// status adds the gate's member, last as that of the hop nearest to the client.
func status(h http.Header, fault, details string) {
	f := sfv.New()
	for _, line := range h[proxyStatus] {
		f.List(line)
	}
	f.Member()
	f.Token(gateName)
	f.Param("error")
	f.Token(fault)
	if details != "" {
		f.Param("details")
		f.Quoted(ascii(details))
	}
	f.Set(h, proxyStatus)
}

// ascii makes text fit for a String, which RFC 9209, 2.1.4 asks for.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), sfv.MaxText)])
}
