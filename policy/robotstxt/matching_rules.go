package robotstxt

import (
	"cmp"
	"slices"

	"robotsgate/policy/robotstxt/internal/match"
)

// Matching returns the rules of the group that match path, a URL's path and query in
// wire order: first the one that governs it, as Match finds it, then the others in the
// order in which they would take its place. It compares every rule, so it is
// for explanations. Of rules that take more steps than a decision may, some can be
// missing.
func (g Group) Matching(path string) []Rule {
	search := candidate{file: g.file, Finder: match.Finder{Steps: match.MaxSteps}, collects: true}
	g.search(&search, Normalize(path), true)
	slices.SortFunc(search.found, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.line, b.line))
	})
	// A rule with a second comparison may have matched in both.
	found := slices.CompactFunc(search.found, func(a, b *rule) bool { return a.line == b.line })
	rules := make([]Rule, len(found))
	for i, r := range found {
		rules[i] = g.file.public(r)
	}
	return rules
}
