package robotstxt

import (
	"cmp"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// Matching returns the rules of the group that match path, a URL's path and query in
// wire order: first the one that governs it, as Match finds it, then those that lose to
// it, in the order in which they would take its place. It looks at every rule, so it is
// for people who ask why. Of rules that take more steps than a decision may, some can
// be missing.
func (g Group) Matching(path string) []Rule {
	path = cmp.Or(Normalize(path), "/")
	var found []*rule
	collect := func(path string, rulesOf func(*section, *File) []rule) {
		f := match.Finder{Steps: match.MaxSteps}
		if !f.BuildIndex(path) {
			return
		}
		for s := range g.sections() {
			rules := rulesOf(s, g.file)
			for i := range rules {
				if g.file.matches(&rules[i], path, &f) {
					found = append(found, &rules[i])
				}
			}
		}
	}
	collect(path, (*section).rules)
	collect(match.EncodeQuery(path), (*section).queryRules)
	slices.SortFunc(found, func(a, b *rule) int { return cmp.Compare(g.file.rank(b), g.file.rank(a)) })
	// A rule with a second comparison may have matched in both.
	found = slices.CompactFunc(found, func(a, b *rule) bool { return a.line == b.line })
	rules := make([]Rule, len(found))
	for i, r := range found {
		rules[i] = g.file.ruleAsWritten(r)
	}
	return rules
}

// matches reports whether a rule's pattern matches a path in normal form.
func (f *File) matches(r *rule, path string, find *match.Finder) bool {
	pattern := f.pattern(r)
	n := f.literalLen(r)
	if !strings.HasPrefix(path, pattern[:n]) {
		return false
	}
	return r.size&wild == 0 || find.MatchWild(pattern[n:], path[n:]) && find.Steps >= 0
}
