package lint

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
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
		if l.sections[i].nobodys {
			continue
		}
		l.beaten(l.sections[i].rules)
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

// shadowed reports crawlers that have a group of their own and so do not obey rules
// in that for *, of which their own group has no equal: no rule as broad, whether it
// denies or allows. Who denies everything to everyone means the others to be
// exceptions, so this rule is not missed.
func (l *linter) shadowed() {
	everyones := l.everyones()
	if len(everyones) == 0 {
		return
	}
	for _, u := range l.units() {
		t := u[0]
		if l.work > maxLintWork {
			return
		}
		seen, all := l.covered(everyones, t)
		if all || t.ruleless {
			continue
		}
		const format = "the group for %s takes the place of the group for *, so %s on line %d does not hold here; repeat what shall hold for it as well"
		if l.full(format) {
			l.report(t.line, format, "", "", 0) // which is but counted
			continue
		}
		name := quote(t.name)
		if len(u) > 1 {
			name += " and others"
		}
		missed := missing(everyones, seen)
		l.report(t.line, format, name, quote(missed.String()), missed.line)
	}
}

// everyones returns the rules for * that deny something, by core.
func (l *linter) everyones() (rules []*lintRule) {
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
	slices.SortStableFunc(rules, func(a, b *lintRule) int { return strings.Compare(a.core, b.core) })
	return rules
}

// units returns the named tokens, together those that have the same groups.
func (l *linter) units() (units [][]*token) {
	index := map[string]int{}
	for _, t := range l.ordered {
		if t.name == "*" {
			continue
		}
		var key []byte
		for _, n := range t.sections {
			key = binary.BigEndian.AppendUint32(key, uint32(n))
		}
		i, ok := index[string(key)]
		if !ok {
			i = len(units)
			index[string(key)] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], t)
	}
	return units
}

// A span is of sorted rules, lo included, hi not.
type span struct{ lo, hi int }

// covered returns which of everyones the group of t has an equal of, as spans in
// order that do not overlap, and whether these are all.
func (l *linter) covered(everyones []*lintRule, t *token) (spans []span, all bool) {
	for _, n := range t.sections {
		s := &l.sections[n]
		if s.open {
			return nil, true // it says that nothing is denied
		}
		for i := range s.rules {
			core := s.rules[i].core
			l.work += len(core) + 100
			lo := sort.Search(len(everyones), func(i int) bool { return everyones[i].core >= core })
			n := sort.Search(len(everyones)-lo, func(i int) bool { return !asBroad(core, everyones[lo+i].core) })
			spans = append(spans, span{lo, lo + n})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	merged := spans[:0]
	end, total := 0, 0
	for _, s := range spans {
		s.lo = max(s.lo, end)
		if s.lo < s.hi {
			merged = append(merged, s)
			total += s.hi - s.lo
			end = s.hi
		}
	}
	return merged, total == len(everyones)
}

// asBroad reports whether a core matches all that another one does, as far as their
// beginning tells.
func asBroad(core, other string) bool {
	if strings.HasSuffix(core, "$") {
		return core == other
	}
	return strings.HasPrefix(other, core)
}

// missing returns the rule that the spans leave out and that stands first in the
// file.
func missing(everyones []*lintRule, spans []span) (first *lintRule) {
	for i, r := range everyones {
		for len(spans) > 0 && spans[0].hi <= i {
			spans = spans[1:]
		}
		if len(spans) > 0 && spans[0].lo <= i {
			continue
		}
		if first == nil || r.line < first.line {
			first = r
		}
	}
	return first
}
