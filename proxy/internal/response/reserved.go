package response

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/header"
)

// Reservation returns the text that reserves and its place, for a denial by policy.ByUsage; "" for other decisions.
func Reservation(s *Signals) string {
	if s.Decision.Reason != policy.ByUsage {
		return ""
	}
	by := s.Decision.Reserved
	if by.Category == "" {
		if s.Head.Why != "" {
			return "page's head: not read whole (" + s.Head.Why + ")"
		}
		return "page's head: not read whole"
	}
	where := ""
	switch by.In {
	case usage.InRobots:
		where = fmt.Sprintf("robots.txt line %d: ", by.Line)
	case usage.InHeader:
		where = "response header "
	case usage.InMeta:
		where = "page's head: "
	case usage.InWellKnown:
		where = "tdmrep.json: "
	}
	return where + statement(s, by)
}

// statement returns the text behind a preference as far as it is known, cut to a bounded length. It may
// come from the network.
func statement(s *Signals, by usage.Preference) string {
	text := by.Category + "=" + by.Value()
	switch {
	case by.In == usage.InRobots && s.Decision.Robots != nil && s.Decision.Robots.File != nil:
		for f := range s.Decision.Robots.File.Fields(fieldNames[by.Source]) {
			if f.Line == by.Line {
				text = f.Name + ": " + f.Value
			}
		}
	case by.Source == usage.RobotsTag:
		for _, rule := range slices.Concat(s.Tags, s.Remembered) {
			if inMeta := rule.Source == robotstag.Meta; slices.Contains(reservingTags, rule.Name) && inMeta == (by.In == usage.InMeta) {
				return tagText(rule)
			}
		}
	case by.In == usage.InHeader:
		name := fieldNames[by.Source]
		text = name + ": " + strings.Join(s.Received[http.CanonicalHeaderKey(name)], ", ")
	case by.Source == usage.TDMRep:
		text = "tdm-reservation: 1"
	}
	return strings.ToValidUTF8(text[:min(len(text), header.MaxText)], "")
}

// reservingTags are the robots tags that are usage preferences.
var reservingTags = []string{"noai", "noimageai", "noml"}

// tagText returns a robots tag as its author may have written it.
func tagText(r robotstag.Rule) string {
	switch {
	case r.Source == robotstag.Meta:
		return "<meta name=" + r.Scope + " content=" + r.Name + ">"
	case r.Source == robotstag.XRobotsTag:
		return "X-Robots-Tag: " + r.Name
	}
	return "Robots-Tag: " + r.Name
}

// fieldNames are the names of response fields, and of fields of robots.txt.
var fieldNames = map[usage.Source]string{
	usage.ContentUsage:  "Content-Usage",
	usage.ContentSignal: "Content-Signal",
	usage.TDMRep:        "TDM-Reservation",
}

// ExplainReserved returns the title and the detail of a refusal by policy.ByUsage.
func ExplainReserved(s *Signals, origin string) (title, detail string) {
	d := s.Decision
	if d.Reserved.Category == "" {
		advice := "let such pages pass."
		switch s.Head.Why {
		case "limit":
			advice = "raise tags.max_head_bytes, or " + advice
		case "timeout":
			advice = "raise tags.head_timeout, or " + advice
		case "status":
			advice += " A request for the whole page reads its head."
		}
		return "The page could not be read whole", "The gate has withheld this page, since it has not read the whole head (" + unreadReason(s.Head) +
			"): it may reserve what this crawler fetches for (crawlers[].purposes), and the gate refuses such pages (usage.unread" +
			"). Its operator can " + advice
	}
	text := fmt.Sprintf("%q", statement(s, d.Reserved))
	switch d.Reserved.In {
	case usage.InRobots:
		detail = fmt.Sprintf("Line %d of %s says %s, in the group for %s.", d.Reserved.Line, d.RobotsURL, text, d.Group.Written())
	case usage.InHeader:
		detail = "A field of the response says " + text + "."
	case usage.InMeta:
		detail = "The head of the page says " + text + "."
	case usage.InWellKnown:
		detail = origin + "/.well-known/tdmrep.json says " + text + " for this URL."
	}
	if level := d.Reserved.Level; level != "" {
		detail += fmt.Sprintf(" This permits use up to the level %s. This crawler declares %s (crawlers[].content_use)", level, d.Crawler.ContentUse)
	} else {
		detail += fmt.Sprintf(" This reserves %s, for which this crawler fetches (crawlers[].purposes)", purpose(d))
	}
	detail += ", so the gate refuses it (usage.reserved)."
	if d.Reserved.In == usage.InHeader || d.Reserved.In == usage.InMeta {
		detail += " The request was sent, but nothing of its response is passed on."
	}
	advice := " With a licence, the gate's operator can add an override with action: allow."
	if len(s.Stated.Licenses) > 0 {
		advice = " For a licence see " + s.Stated.Licenses[0].URL + "; with one, the gate's operator can add an override with action: allow."
	}
	return "Reserved by the publisher", detail + advice
}

// purpose returns the crawler's purpose that is reserved; "" if it is a level of use.
func purpose(d *policy.Decision) usage.Purpose {
	by := usage.Stated{Preferences: []usage.Preference{d.Reserved}}
	_, purpose, _ := by.Reserved(d.Crawler.Purposes, "")
	return purpose
}

// unreadReason says in words why a head was not read whole.
func unreadReason(h Head) string {
	switch h.Why {
	case "limit":
		return "it is too long"
	case "timeout":
		return "it came too slowly"
	case "encoding":
		return "its encoding can't be read"
	case "status":
		return "the response has only a part of the page"
	case "type":
		return "it has no Content-Type, and does not begin as a page does"
	}
	return "it broke off"
}

// Reserved is the statement that reserves what a crawler fetches for, as JSON.
type Reserved struct {
	Purpose usage.Purpose `json:"purpose,omitempty"`
	Use     string        `json:"use"`
	Source  usage.Source  `json:"source"`
	In      usage.Place   `json:"in"`
	Line    int           `json:"line,omitempty"` // of robots.txt
	Text    string        `json:"text"`
}

// ReservedDocument returns the statement that reserves, for JSON; nil if there is none.
func ReservedDocument(s *Signals) *Reserved {
	by := s.Decision.Reserved
	if s.Decision.Reason != policy.ByUsage || by.Category == "" {
		return nil
	}
	return &Reserved{Purpose: purpose(s.Decision), Use: by.Category, Source: by.Source, In: by.In, Line: by.Line, Text: statement(s, by)}
}
