package response

import (
	"cmp"
	"fmt"

	"robotsgate/policy"
	"robotsgate/policy/usage"
)

// Reservation says what denies a request, for a denial by policy.ByUsage.
func Reservation(d *policy.Decision) string {
	if d.Reserved.Category == "" {
		return "the page's head was not read whole"
	}
	return d.Reserved.Detail().String()
}

// ExplainReserved returns the title and the detail of a refusal by policy.ByUsage.
func ExplainReserved(s *Signals) (title, detail string) {
	d := s.Decision
	if d.Reserved.Category == "" {
		return "The page could not be read whole", "The gate has withheld this page, since it has not read the whole head (" +
			cmp.Or(s.Head.Why, "it broke off") + "): it may reserve what this crawler fetches for (crawlers[].purposes), and the gate " +
			"refuses such pages (usage.unread). Its operator can raise tags.max_head_bytes or tags.head_timeout, or let such pages pass."
	}
	detail = "The publisher states " + Reservation(d) + "."
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
