package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"robotsgate/policy/glob"
	"robotsgate/policy/robotstxt"
)

// An Override is an operator's exception from what robots.txt says.
type Override struct {
	Hosts    []glob.Glob
	Paths    *robotstxt.File // the paths as the rules of a group for "*"; nil: all
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
		text.WriteString("Disallow: ")
		for i := range len(p) {
			// A comment or the end of the line would make the pattern shorter,
			// and the override wider, than it reads.
			if c := p[i]; c <= ' ' || c == '#' {
				fmt.Fprintf(&text, "%%%02X", c)
				continue
			}
			text.WriteByte(p[i])
		}
		text.WriteByte('\n')
	}
	return robotstxt.Parse([]byte(text.String()), 0)
}

// applies reports whether the override decides about a request. Expiry is looked
// at here, for every request, so that no reload is needed for it. ReadAs is the
// reading of the path that a denial is for, if that is not the literal one.
func (o *Override) applies(r Request, path *spelledPath, now time.Time) (readAs string, ok bool) {
	if !o.Expires.IsZero() && !now.Before(o.Expires) {
		return "", false
	}
	if len(o.Crawlers) > 0 && !slices.Contains(o.Crawlers, r.Crawler.Name) {
		return "", false
	}
	host := r.Target.Hostname()
	if !slices.ContainsFunc(o.Hosts, func(g glob.Glob) bool { return g.Match(host) }) {
		return "", false
	}
	switch {
	case o.Paths == nil:
		return "", true
	case !o.Allow:
		return o.denies(path)
	case r.whole:
		// "/$" matches the root, which must not open what else there is.
		return "", o.allows(path) && o.allows(&spelledPath{path: anyPath})
	default:
		return "", o.allows(path)
	}
}

// denies reports whether any reading of a path is among those of the override.
func (o *Override) denies(path *spelledPath) (readAs string, ok bool) {
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

// allows reports whether the literal path is among those of the override. Unless its
// pattern is written for this very spelling, all other readings have to be among them,
// too: to allow /public/ must not open /public/..;/private/.
func (o *Override) allows(path *spelledPath) bool {
	group := o.Paths.Group()
	rule, ok := group.Match(path.path)
	if !ok || rule.SpeaksFor(path.path) {
		return ok
	}
	return !slices.ContainsFunc(path.others(), func(reading string) bool {
		_, ok := group.Match(reading)
		return !ok
	})
}

// Overridden decides a request by the first override that applies to it, if one does,
// as an Engine would before it looks at robots.txt.
func Overridden(overrides []Override, readings Readings, r Request) (d Decision, decided bool) {
	return byOverride(overrides, readings, r, time.Now())
}

// anyPath stands for all paths: nobody has a pattern for it alone.
const anyPath = "/%01"
