package policy

import (
	"slices"
	"strings"
	"time"

	"robotsgate/policy/glob"
	"robotsgate/policy/robotstxt"
)

// An Override is an operator's exception from the robots.txt of some hosts.
type Override struct {
	Hosts    []glob.Glob
	Paths    *robotstxt.File // made by [PathRules]; nil: all
	Crawlers []string        // names; empty: all
	Allow    bool
	Reason   string    // shown in annotations and in the audit log
	Expires  time.Time // zero: never
}

// PathRules compiles path patterns in the syntax of robots.txt for Override.Paths.
func PathRules(patterns []string) *robotstxt.File {
	if len(patterns) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString("User-agent: *\n")
	for _, p := range patterns {
		// A comment or the end of the line would shorten the pattern and so widen the override.
		p = percentEncode(p, func(c byte) bool { return c <= ' ' || c == '#' })
		text.WriteString("Disallow: " + p + "\n")
	}
	return robotstxt.Parse([]byte(text.String()), 0)
}

// applies reports whether the override decides about a request. It checks the expiry
// for every request, so that it takes effect without a reload. ReadAs is the
// reading of the path that is denied, if that is not the literal one.
func (o *Override) applies(r Request, path *pathReadings, now time.Time) (readAs string, ok bool) {
	host := r.Target.Hostname()
	switch {
	case !o.Expires.IsZero() && !now.Before(o.Expires),
		len(o.Crawlers) > 0 && !slices.Contains(o.Crawlers, r.Crawler.Name),
		!slices.ContainsFunc(o.Hosts, func(g glob.Glob) bool { return g.Match(host) }):
		return "", false
	case o.Paths == nil:
		return "", true
	case !o.Allow:
		return o.denies(path)
	case r.whole:
		// "/$" matches the root, and must not open the other paths.
		return "", o.allows(path) && o.allows(&pathReadings{path: anyPath})
	default:
		return "", o.allows(path)
	}
}

// denies reports whether any reading of a path is one of the override's paths.
func (o *Override) denies(path *pathReadings) (readAs string, ok bool) {
	group := o.Paths.Group()
	if _, ok := group.Match(path.path); ok {
		return "", true
	}
	for _, reading := range path.others() {
		if _, ok := group.Match(reading); ok {
			return reading, true
		}
	}
	return "", false
}

// allows reports whether the override allows a path. The literal path must be one of the
// override's paths, and all its other readings too: an override for /public/ must not open
// /public/..;/private/. The other readings do not count if the pattern is written in the same
// spelling as the path.
func (o *Override) allows(path *pathReadings) bool {
	group := o.Paths.Group()
	rule, ok := group.Match(path.path)
	if !ok || rule.SpellsLike(path.path) {
		return ok
	}
	return !slices.ContainsFunc(path.others(), func(reading string) bool {
		_, ok := group.Match(reading)
		return !ok
	})
}

// anyPath stands for all paths. No origin has it, so a pattern that matches it is for all paths.
const anyPath = "/%01"
