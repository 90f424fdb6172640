package lint

import (
	"fmt"
	"slices"
)

// finish looks at what can be seen only when all has been read.
func (l *linter) finish() {
	l.last()
	for _, t := range l.ordered {
		slices.Sort(t.sections)
		t.sections = slices.Compact(t.sections)
		if len(t.sections) > 1 {
			for _, n := range t.sections {
				l.sections[n].shared = true
			}
		}
	}
	for i := range l.sections {
		if l.sections[i].nameless {
			continue
		}
		l.redundant(l.sections[i].rules)
		l.allowsOnly(&l.sections[i])
	}
	l.shadowed()
}

// allowsOnly reports a group that allows some paths and denies none: its author may
// have thought that Allow denies everything else.
func (l *linter) allowsOnly(s *lintSection) {
	if s.open || s.shared || len(s.rules) == 0 {
		return
	}
	for i := range s.rules {
		if r := &s.rules[i]; !r.allow || r.core == "" {
			return
		}
	}
	l.report(s.rules[0].line, "the group denies nothing, so its Allow lines do nothing; add \"Disallow: /\" if all else shall be denied")
}

// shadowed reports crawlers that have a group of their own, and so do not obey a rule in
// the group for * of which their own has no equal: no rule as broad, whether it denies or
// allows. Denying everything to everyone means the other groups to be exceptions, so
// that rule is not missed.
func (l *linter) shadowed() {
	forAll := l.denyRulesForAll()
	if len(forAll) == 0 {
		return
	}
	for _, tokens := range l.tokensByGroups() {
		t := tokens[0]
		if l.work > maxLintWork {
			return
		}
		missed := l.missing(forAll, t)
		if missed == nil || t.ruleless {
			continue
		}
		name := quote(t.name)
		if len(tokens) > 1 {
			name += " and others"
		}
		l.report(t.line, "the group for %s takes the place of the group for *, so %s on line %d does not hold here; repeat what shall hold for it as well", name, quote(missed.String()), missed.line)
	}
}

// denyRulesForAll returns the rules for * that deny something, in the order of the file.
func (l *linter) denyRulesForAll() (rules []*lintRule) {
	star := l.tokens["*"]
	if star == nil {
		return nil
	}
	for _, n := range star.sections {
		for i := range l.sections[n].rules {
			if r := &l.sections[n].rules[i]; !r.allow && r.core != "" {
				rules = append(rules, r)
			}
		}
	}
	slices.SortStableFunc(rules, func(a, b *lintRule) int { return a.line - b.line })
	return rules
}

// tokensByGroups returns the named tokens, with the tokens of the same groups together.
func (l *linter) tokensByGroups() (all [][]*token) {
	index := map[string]int{}
	for _, t := range l.ordered {
		if t.name == "*" {
			continue
		}
		key := fmt.Sprint(t.sections)
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], t)
	}
	return all
}

// missing returns the first of the rules that has no equal in the groups of t; nil if
// there is none.
func (l *linter) missing(rules []*lintRule, t *token) *lintRule {
	own := map[string]bool{} // cores
	for _, n := range t.sections {
		s := &l.sections[n]
		if s.open {
			return nil // it says that nothing is denied
		}
		for i := range s.rules {
			own[s.rules[i].core] = true
		}
		l.work += 100 * len(s.rules)
	}
	for _, r := range rules {
		if l.work += 20 * len(r.core); !hasPrefixIn(own, r.core) {
			return r
		}
	}
	return nil
}

// hasPrefixIn reports whether a core or one of its prefixes is among others. As far as
// their beginnings tell, a prefix matches all that the core does: one that ends in $ is
// the core itself.
func hasPrefixIn(others map[string]bool, core string) bool {
	for n := range len(core) + 1 {
		if others[core[:n]] {
			return true
		}
	}
	return false
}
