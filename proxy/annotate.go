package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
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
	f := newFields()
	defer f.free()
	// Apart from the others: HTTP/2 keeps what is new in every answer, and would keep all of
	// them for its sake.
	h[headerID] = []string{x.idField}
	if d := x.Decision; d != nil {
		decisionField(f, d)
		if d.Robots != nil {
			sourceField(f, d)
		}
		if delay, line, ok := d.Group.CrawlDelay(); ok {
			set(h, headerDelay, item(delay, "line", int64(line)))
		}
	}
	if len(x.Tags)+len(x.Remembered) > 0 {
		tagMembers(f, x.Tags, false, true)
		tagMembers(f, x.Remembered, true, len(x.Tags) == 0)
		f.end(headerTags)
	}
	if x.Head.State != "" {
		x.Head.field(f)
	}
	f.addTo(h)
}

func decisionField(f *fields, d *policy.Decision) {
	f.token(verb(d.Allow))
	f.param("reason")
	f.token(string(d.Reason))
	f.textParam("token", d.Token)
	f.textParam("group", d.Group.Name())
	if d.Reason == policy.ByRule {
		f.param("line")
		f.integer(int64(d.Rule.Line))
		f.textParam("rule", d.Rule.String())
	}
	f.textParam("note", d.Note)
	f.textParam("read-as", d.ReadAs)
	if !d.Allow && !d.Enforced {
		f.param("enforced")
		f.buf = append(f.buf, "?0"...)
	}
	f.end(headerDecision)
}

func verb(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func sourceField(f *fields, d *policy.Decision) {
	st := d.Robots
	f.plain(d.URL) // canonical
	if st.Snapshot.Status != 0 {
		f.param("status")
		f.integer(int64(st.Snapshot.Status))
	}
	f.param("state")
	f.token(string(st.State))
	f.param("age")
	f.integer(int64(st.Age / time.Second))
	if st.Snapshot.SHA256 != "" {
		f.param("sha256")
		f.plain(st.Snapshot.SHA256)
	}
	if st.Snapshot.Cut {
		f.flag("truncated")
	}
	f.end(headerSource)
}

// tagMembers appends one member for each rule and source.
func tagMembers(f *fields, rules []robotstag.Rule, remembered, first bool) {
	for i, r := range rules {
		f.next(first && i == 0)
		f.token(r.Name)
		if n, err := strconv.ParseInt(r.Value, 10, 64); err == nil {
			f.param("v")
			f.integer(n)
		} else if r.Name == "unavailable_after" {
			f.param("v")
			f.date(time.Unix(r.Time, 0)) // 0 is a date too
		} else if r.Value != "" {
			f.param("v")
			f.token(r.Value)
		}
		f.param("src")
		f.token(string(r.Source))
		f.textParam("scope", r.Scope)
		if remembered {
			f.flag("remembered")
		}
	}
}

func (h Head) field(f *fields) {
	f.token(h.State)
	if h.Why != "" {
		f.param("why")
		f.token(h.Why)
	}
	switch h.State {
	case "complete", "partial":
		f.param("bytes")
		f.integer(h.Bytes)
	case "remembered":
		f.param("age")
		f.integer(int64(h.Age / time.Second))
	}
	if h.Cut {
		f.flag("truncated")
	}
	f.end(headerMeta)
}

// item returns a structured item with parameters as pairs of name and value.
func item(value any, params ...any) httpsfv.Item {
	i := httpsfv.NewItem(value)
	for p := 0; p+1 < len(params); p += 2 {
		i.Params.Add(params[p].(string), params[p+1])
	}
	return i
}

// set writes a field that is known to be valid; one that is not, which would be
// a mistake of ours, is left out.
func set(h http.Header, name string, value httpsfv.StructuredFieldValue) {
	if s, err := httpsfv.Marshal(value); err == nil {
		h[name] = []string{s}
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
	f := newFields()
	defer f.free()
	for _, line := range h[proxyStatus] {
		f.buf = append(append(f.buf, line...), ", "...)
	}
	f.token(gateName)
	f.param("error")
	f.token(fault)
	if details != "" {
		f.param("details")
		f.str(ascii(details))
	}
	f.end(proxyStatus)
	f.addTo(h)
}

// ascii makes text fit for a String, which RFC 9209, 2.1.4 asks for.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), maxRuleText)])
}
