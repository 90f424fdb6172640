package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"robotsgate/htmlmeta"
	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/sfv"
)

// state sets x.Stated to what is in force for a response: the statements known before the request, and
// those of the response's header and the page's head.
func (x *exchange) state() {
	s := &x.signals
	if s.received == nil && len(x.Tags)+len(x.Remembered)+len(s.metas)+len(s.links)+len(s.seen.Metas)+len(s.seen.Links) == 0 {
		return // the response states nothing, so x.Stated holds
	}
	in := usage.Input{Header: s.received, Metas: s.metas, Links: s.links, Tags: x.Tags}
	if len(s.seen.Metas)+len(s.seen.Links) > 0 { // remembered, since the response has no page
		in.Metas, in.Links = s.seen.Metas, s.seen.Links
	}
	if len(x.Remembered) > 0 {
		in.Tags = slices.Concat(x.Tags, x.Remembered)
	}
	x.Stated = x.Decision.UsageOf(x.target.Path, in)
}

// reserved changes the decision to a denial if the response reserves a purpose of the crawler, or if
// the policy refuses unread pages and the page's head was not read whole. It returns the refusal to answer with in
// place of the response, and nil if the response is to be passed on, as in report mode.
func (x *exchange) reserved(r *http.Request, resp *http.Response, contentType string) *problem {
	d, settings := x.Decision, x.settings.Engine.Usage()
	if !settings.Refuses() || len(d.Crawler.Purposes) == 0 || !d.Allow || d.Reason == policy.ByOverride {
		return nil
	}
	by, _, reserved := x.Stated.Reserved(d.Crawler.Purposes)
	if !reserved && !(settings.Unread == policy.RefuseUnread && x.unread(r, resp, contentType)) {
		return nil
	}
	d.Allow, d.Reason, d.Reserved = false, policy.ByUsage, by
	x.cite()
	if !d.Denied() {
		return nil
	}
	return refusal(x)
}

// unread reports whether a response has, or may have, a page or parts of a page with a head that the gate has not read
// whole.
func (x *exchange) unread(r *http.Request, resp *http.Response, contentType string) bool {
	if x.Head.State == "partial" || x.signals.unknown {
		return true
	}
	// The parts may be the whole page.
	return r.Method != http.MethodHead && isPart(resp) && x.Head.State == "skipped" &&
		(htmlmeta.MayBePage(contentType) || strings.HasPrefix(strings.ToLower(contentType), "multipart/byteranges"))
}

// cite sets x.Statement, for the record, to the text that reserves and its place.
func (x *exchange) cite() {
	by := x.Decision.Reserved
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
	x.Statement = where + x.statement(by)
	if by.Category == "" {
		x.Statement = "page's head: not read whole"
		if x.Head.Why != "" {
			x.Statement += " (" + x.Head.Why + ")"
		}
	}
}

// statement returns the text behind a preference as far as it is known, cut to a bounded length. It may
// come from the network.
func (x *exchange) statement(by usage.Preference) string {
	text := by.Category + "=" + by.Value()
	switch {
	case by.In == usage.InRobots && x.Decision.Robots != nil && x.Decision.Robots.File != nil:
		for record := range x.Decision.Robots.File.Records(fieldNames[by.Source]) {
			if record.Line == by.Line {
				text = record.Name + ": " + record.Value
			}
		}
	case by.Source == usage.RobotsTag:
		for _, rule := range slices.Concat(x.Tags, x.Remembered) {
			if inMeta := rule.Source == robotstag.Meta; slices.Contains(reservingTags, rule.Name) && inMeta == (by.In == usage.InMeta) {
				return tagText(rule)
			}
		}
	case by.In == usage.InHeader:
		name := fieldNames[by.Source]
		text = name + ": " + strings.Join(x.signals.received[http.CanonicalHeaderKey(name)], ", ")
	case by.Source == usage.TDMRep:
		text = "tdm-reservation: 1"
	}
	return strings.ToValidUTF8(text[:min(len(text), sfv.MaxText)], "")
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

// fieldNames are the names of response fields, and of records of robots.txt.
var fieldNames = map[usage.Source]string{
	usage.ContentUsage:  "Content-Usage",
	usage.ContentSignal: "Content-Signal",
	usage.TDMRep:        "TDM-Reservation",
}

// explainReserved returns the title and the detail of a refusal by policy.ByUsage.
func (x *exchange) explainReserved() (title, detail string) {
	d := x.Decision
	if d.Reserved.Category == "" {
		advice := "let such pages pass."
		switch x.Head.Why {
		case "limit":
			advice = "raise tags.max_head_bytes, or " + advice
		case "timeout":
			advice = "raise tags.head_timeout, or " + advice
		case "status":
			advice += " A request for the whole page reads its head."
		}
		return "The page could not be read whole", "The gate has withheld this page, since it has not read the whole head (" + unreadReason(x.Head) +
			"): it may reserve what this crawler fetches for (crawlers[].purposes), and the gate refuses such pages (usage.unread" +
			"). Its operator can " + advice
	}
	text := fmt.Sprintf("%q", x.statement(d.Reserved))
	switch d.Reserved.In {
	case usage.InRobots:
		detail = fmt.Sprintf("Line %d of %s says %s, in the group for %s.", d.Reserved.Line, d.URL, text, d.Group.Written())
	case usage.InHeader:
		detail = "A field of the response says " + text + "."
	case usage.InMeta:
		detail = "The head of the page says " + text + "."
	case usage.InWellKnown:
		detail = x.Origin + "/.well-known/tdmrep.json says " + text + " for this URL."
	}
	detail += fmt.Sprintf(" This reserves %s, for which this crawler fetches (crawlers[].purposes), so the gate refuses it (usage.reserved).", x.purpose())
	if d.Reserved.In == usage.InHeader || d.Reserved.In == usage.InMeta {
		detail += " The request was sent, but nothing of its response is passed on."
	}
	advice := " With a licence, the gate's operator can add an override with action: allow."
	if len(x.Stated.Licenses) > 0 {
		advice = " For a licence see " + x.Stated.Licenses[0].URL + "; with one, the gate's operator can add an override with action: allow."
	}
	return "Reserved by the publisher", detail + advice
}

// purpose returns the crawler's purpose that is reserved.
func (x *exchange) purpose() usage.Purpose {
	by := usage.Stated{Preferences: []usage.Preference{x.Decision.Reserved}}
	_, purpose, _ := by.Reserved(x.Decision.Crawler.Purposes)
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

// reservedDocument returns the statement that reserves, for JSON; nil if there is none.
func (x *exchange) reservedDocument() *reserved {
	by := x.Decision.Reserved
	if x.Decision.Reason != policy.ByUsage || by.Category == "" {
		return nil
	}
	return &reserved{Purpose: x.purpose(), Use: by.Category, Source: by.Source, In: by.In, Line: by.Line, Text: x.statement(by)}
}
