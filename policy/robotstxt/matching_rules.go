package robotstxt

import (
	"cmp"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// Matching returns the rules of the group that match path, a URL's path and query in
// wire order: first the one that governs it, as Match finds it, then the others in the
// order in which they would take its place. It compares every rule, so it is
// for explanations. Of rules that take more steps than a decision may, some can be
// missing.
func (g Group) Matching(path string) []Rule {
	path = cmp.Or(Normalize(path), "/")
	var found []*rule
	collect := func(path string, rulesOf func(*section) []rule) {
		f := match.Finder{Steps: match.MaxSteps}
		if !f.BuildIndex(path) {
			return
		}
		for s := range g.sections() {
			rules := rulesOf(s)
			for i := range rules {
				if rules[i].matches(path, &f) {
					found = append(found, &rules[i])
				}
			}
		}
	}
	collect(path, func(s *section) []rule { return s.rules })
	collect(match.EncodeQuery(path), func(s *section) []rule { return s.queryRules })
	slices.SortFunc(found, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.line, b.line))
	})
	// A rule with a second comparison may have matched in both.
	found = slices.CompactFunc(found, func(a, b *rule) bool { return a.line == b.line })
	rules := make([]Rule, len(found))
	for i, r := range found {
		rules[i] = g.file.public(r)
	}
	return rules
}

// matches reports whether the pattern matches a path in normal form.
func (r *rule) matches(path string, f *match.Finder) bool {
	n := match.LiteralLen(r.pattern)
	if !strings.HasPrefix(path, r.pattern[:n]) {
		return false
	}
	return n == len(r.pattern) || f.MatchWild(r.pattern[n:], path[n:]) && f.Steps >= 0
}
