// Package robotstag reads robots tags: the Robots-Tag and X-Robots-Tag
// response fields and the equivalent <meta> elements of HTML.
//
// Three syntaxes share the two field names: the structured field of
// draft-illyes-repext-03, the groups of draft-illyes-repext-00, and
// X-Robots-Tag as search engines have read it since 2007. One parser reads
// them all, since sites write any of them under either name.
//
// Use [ParseHeader] and [ParseMeta] first, and join what they return with [Union]. Then
// [Tags.For] returns the rules that bind a crawler, and [Effective] the strictest of them.
//
// The package does no I/O and knows no clock. A crawler is bound by the union of all rules
// for it; no rule lifts another.
package robotstag

import (
	"slices"
	"strings"
)

// A Source is where a rule was read.
type Source string

// The sources of rules, spelled as in annotations.
const (
	RobotsTag  Source = "robots-tag"
	XRobotsTag Source = "x-robots-tag"
	Meta       Source = "meta"
)

// A Rule is one word of a robots tag, with the scope it was given for.
type Rule struct {
	Name   string // lower-case and canonical; "none" has become noindex and nofollow
	Value  string // "20" or "large"; a date as RFC 3339 in UTC; "" for flags
	Time   int64  // of unavailable_after only: the date in Unix seconds
	Source Source
	Scope  string // the product token as its author spelled it; "*" or "robots" is everyone
}

// String returns the rule as "noindex" or "max-snippet=20".
func (r Rule) String() string {
	if r.Value == "" {
		return r.Name
	}
	return r.Name + "=" + r.Value
}

// Global reports whether the rule is meant for every crawler.
func (r Rule) Global() bool { return r.Scope == "*" || strings.EqualFold(r.Scope, "robots") }

// binds reports whether the rule is meant for a crawler with these tokens.
func (r Rule) binds(tokens []string) bool {
	// The whole token, ignoring case (RFC 9309, section 2.2.1): a rule for
	// "Example" does not bind "ExampleBot".
	return r.Global() || slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(r.Scope, t) })
}

// Tags is everything that was read, for every scope. Treat it as immutable: it
// may be cached and shared.
type Tags struct {
	// Rules holds, in the order read, at most one rule for each name, source
	// and scope: the smallest limit, the earliest date.
	Rules []Rule

	// Unknown holds words that are neither rules nor scopes, and limits or
	// dates that could not be read.
	Unknown []string

	// Truncated is set if a field was longer than MaxField.
	Truncated bool
}

// For returns the rules that bind a crawler with these product tokens, in the
// order read: the rules for all crawlers and the rules of each scope that names it.
func (t Tags) For(tokens ...string) []Rule {
	return slices.DeleteFunc(slices.Clone(t.Rules), func(r Rule) bool { return !r.binds(tokens) })
}

// Union returns the rules of all ts, of the same name, source and scope the strictest.
func Union(ts ...Tags) Tags {
	var c collector
	n := 0
	for _, t := range ts {
		n += len(t.Rules)
	}
	c.tags.Rules = slices.Grow(c.tags.Rules, n)
	for _, t := range ts {
		for _, r := range t.Rules {
			c.add(r)
		}
		for _, w := range t.Unknown {
			c.unknown(w)
		}
		c.tags.Truncated = c.tags.Truncated || t.Truncated
	}
	return c.tags
}

// Effective returns the union of rules as sorted strings: each flag once, the smallest value of
// each limit, and the earliest date, from any scope. A rule for one crawler can't loosen a rule
// for all crawlers.
func Effective(rules []Rule) []string {
	strictest := make([]Rule, 0, len(rules))
	for _, r := range rules {
		i := slices.IndexFunc(strictest, func(s Rule) bool { return s.Name == r.Name })
		if i < 0 {
			strictest = append(strictest, r)
		} else if stricter(r, strictest[i]) {
			strictest[i] = r
		}
	}
	words := make([]string, len(strictest))
	for i, r := range strictest {
		words[i] = r.String()
	}
	slices.Sort(words)
	return words
}
