package lint

import (
	"fmt"
	"slices"
)

// finish looks at what can be seen only when all has been read.
func (l *linter) finish() {
	l.lastLicense()
	l.last()
	for _, t := range l.ordered {
		for _, s := range t.sections {
			s.shared = s.shared || len(t.sections) > 1
		}
	}
	for _, s := range l.sections {
		l.redundant(s.rules)
		l.allowsOnly(s)
	}
	l.shadowed()
}

// allowsOnly reports a group that allows some paths and denies none: its author may
// have thought that Allow denies everything else.
func (l *linter) allowsOnly(s *section) {
	meant := func(r lintRule) bool { return !r.allow || r.core == "" }
	if len(s.rules) > 0 && !s.open && !s.shared && !slices.ContainsFunc(s.rules, meant) {
		l.report(s.rules[0].line, "the group denies nothing, so its Allow lines do nothing; add \"Disallow: /\" if all else shall be denied")
	}
}

// shadowed reports crawlers that have a group of their own, and so do not obey a rule in
// the group for * of which their own has no equal: no rule as broad, whether it denies or
// allows. Denying everything to everyone means the other groups to be exceptions, so
// that rule is not missed. Crawlers with the same groups are reported once.
func (l *linter) shadowed() {
	forAll := l.denyRulesForAll()
	alike := map[string]int{}
	for _, t := range l.ordered {
		alike[fmt.Sprint(t.sections)]++
	}
	for _, t := range l.ordered {
		key := fmt.Sprint(t.sections)
		n := alike[key]
		alike[key] = 0
		if n == 0 || t.name == "*" || l.work > maxLintWork {
			continue
		}
		missed := l.missing(forAll, t)
		if missed == nil {
			continue
		}
		name := quote(t.name)
		if n > 1 {
			name += " and others"
		}
		l.report(t.line, "the group for %s takes the place of the group for *, so %s on line %d does not hold here; repeat what shall hold for it as well", name, quote(missed.String()), missed.line)
	}
}

// denyRulesForAll returns the rules for * that deny something, in the order of the file.
func (l *linter) denyRulesForAll() (rules []lintRule) {
	if star := l.tokens["*"]; star != nil {
		for _, s := range star.sections {
			rules = append(rules, s.rules...)
		}
	}
	rules = slices.DeleteFunc(rules, func(r lintRule) bool { return r.allow || r.core == "" })
	slices.SortStableFunc(rules, func(a, b lintRule) int { return a.line - b.line })
	return rules
}

// missing returns the first of the rules that has no equal in the groups of t; nil if
// there is none.
func (l *linter) missing(rules []lintRule, t *token) *lintRule {
	own := map[string]bool{} // cores
	for _, s := range t.sections {
		if s.open {
			return nil // it says that nothing is denied
		}
		for _, r := range s.rules {
			own[r.core] = true
		}
		l.work += 100 * len(s.rules)
	}
	for _, r := range rules {
		l.work += 20 * len(r.core)
		// As far as their beginnings tell, a prefix matches all that the core does: one that
		// ends in $ is the core itself.
		covered := false
		for n := range len(r.core) + 1 {
			covered = covered || own[r.core[:n]]
		}
		if !covered {
			return &r
		}
	}
	return nil
}
