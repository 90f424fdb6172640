package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

// maxRuleText bounds what of an untrusted line goes into a header, in bytes.
const maxRuleText = 256

// annotate says in a response's headers what was decided about its request and
// which robots rules bind the crawler.
func annotate(h http.Header, x *Exchange) {
	set(h, headerID, item(x.ID))
	if d := x.Decision; d != nil {
		set(h, headerDecision, decisionItem(d))
		if d.Robots != nil {
			set(h, headerSource, sourceItem(d))
		}
		if delay, line, ok := d.Group.CrawlDelay(); ok {
			set(h, headerDelay, item(delay, "line", int64(line)))
		}
	}
	if len(x.Tags)+len(x.Remembered) > 0 {
		set(h, headerTags, append(tagList(x.Tags, false), tagList(x.Remembered, true)...))
	}
	if x.Head.State != "" {
		set(h, headerMeta, x.Head.item())
	}
}

func decisionItem(d *policy.Decision) httpsfv.Item {
	i := item(httpsfv.Token(verb(d.Allow)), "reason", httpsfv.Token(d.Reason))
	add(i, "token", text(d.Token))
	add(i, "group", text(d.Group.Name()))
	if d.Reason == policy.ByRule {
		i.Params.Add("line", int64(d.Rule.Line))
		add(i, "rule", text(d.Rule.String()))
	}
	add(i, "note", text(d.Note))
	if !d.Allow && !d.Enforced {
		i.Params.Add("enforced", false)
	}
	return i
}

func verb(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func sourceItem(d *policy.Decision) httpsfv.Item {
	st := d.Robots
	i := item(d.URL)
	if st.Snapshot.Status != 0 {
		i.Params.Add("status", int64(st.Snapshot.Status))
	}
	i.Params.Add("state", httpsfv.Token(st.State))
	i.Params.Add("age", int64(st.Age/time.Second))
	if st.Snapshot.SHA256 != "" {
		i.Params.Add("sha256", st.Snapshot.SHA256)
	}
	if st.Snapshot.Cut {
		i.Params.Add("truncated", true)
	}
	return i
}

// tagList has one member for each rule and source.
func tagList(rules []robotstag.Rule, remembered bool) httpsfv.List {
	var l httpsfv.List
	for _, r := range rules {
		i := item(httpsfv.Token(r.Name))
		if n, err := strconv.ParseInt(r.Value, 10, 64); err == nil {
			i.Params.Add("v", n)
		} else if r.Name == "unavailable_after" {
			i.Params.Add("v", time.Unix(r.Time, 0)) // 0 is a date too
		} else if r.Value != "" {
			i.Params.Add("v", httpsfv.Token(r.Value))
		}
		i.Params.Add("src", httpsfv.Token(r.Source))
		add(i, "scope", text(r.Scope))
		if remembered {
			i.Params.Add("remembered", true)
		}
		l = append(l, i)
	}
	return l
}

// A Head says how far a page was read for its robots rules.
type Head struct {
	State string        // complete, partial, skipped or remembered; empty: not an origin's answer
	Why   string        // of partial and skipped
	Bytes int64         // read, decoded
	Cut   bool          // the tags' header fields were too long to be read whole
	Age   time.Duration // of remembered: since the rules were seen
}

func (h Head) item() httpsfv.Item {
	i := item(httpsfv.Token(h.State))
	if h.Why != "" {
		i.Params.Add("why", httpsfv.Token(h.Why))
	}
	switch h.State {
	case "complete", "partial":
		i.Params.Add("bytes", h.Bytes)
	case "remembered":
		i.Params.Add("age", int64(h.Age/time.Second))
	}
	if h.Cut {
		i.Params.Add("truncated", true)
	}
	return i
}

// item returns a structured item with parameters as pairs of name and value.
func item(value any, params ...any) httpsfv.Item {
	i := httpsfv.NewItem(value)
	for p := 0; p+1 < len(params); p += 2 {
		i.Params.Add(params[p].(string), params[p+1])
	}
	return i
}

// add adds a text parameter unless it is empty.
func add(i httpsfv.Item, name string, value any) {
	if value != "" {
		i.Params.Add(name, value)
	}
}

// text returns untrusted text as a String where it is printable ASCII, else as
// a Display String, cut to what a header should hold.
func text(s string) any {
	if len(s) > maxRuleText {
		s = s[:maxRuleText]
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(s); i++ { // cut inside a character
			s = s[:len(s)-1]
		}
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return httpsfv.DisplayString(strings.ToValidUTF8(s, "\uFFFD"))
		}
	}
	return s
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
	i := item(httpsfv.Token(gateName), "error", httpsfv.Token(fault))
	add(i, "details", ascii(details))
	s, err := httpsfv.Marshal(i)
	if err != nil {
		return
	}
	if before := strings.Join(h[proxyStatus], ", "); before != "" {
		s = before + ", " + s
	}
	h[proxyStatus] = []string{s}
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
