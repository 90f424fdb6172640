package lint

import (
	"fmt"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt"
)

// finish looks at what can be seen only when all has been read.
func (l *linter) finish(data []byte, limit int) {
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
	l.shadowed(data, limit)
}

// allowsOnly reports a group that allows some paths and denies none: its author may
// have thought that Allow denies everything else.
func (l *linter) allowsOnly(s *section) {
	meant := func(r lintRule) bool { return !r.allow || r.core == "" }
	if len(s.rules) > 0 && !s.open && !s.shared && !slices.ContainsFunc(s.rules, meant) {
		l.report(Decisions, s.rules[0].line, "the group denies nothing, so its Allow lines do nothing; a \"Disallow: /\" would deny everything else")
	}
}

// shadowed reports crawlers that have a group of their own, and so do not obey a rule in
// the group for * that denies URLs about which their own says nothing. Denying everything to
// everyone means the other groups to be exceptions, so that rule is not missed. Crawlers with the
// same groups are reported once.
func (l *linter) shadowed(data []byte, limit int) {
	forAll := l.denyRulesForAll()
	if len(forAll) == 0 || len(l.ordered) == 1 {
		return
	}
	alike := map[string]int{}
	for _, t := range l.ordered {
		alike[fmt.Sprint(t.sections)]++
	}
	judge := judge{file: robotstxt.Parse(data, limit)}
	for _, t := range l.ordered {
		key := fmt.Sprint(t.sections)
		n := alike[key]
		alike[key] = 0
		if judge.spent() {
			return
		}
		if n == 0 || t.name == "*" || slices.ContainsFunc(t.sections, func(s *section) bool { return s.open }) {
			continue // it is reported, or says that nothing is denied
		}
		i := slices.IndexFunc(forAll, func(r lintRule) bool { return judge.misses(r, t.name) })
		if i < 0 {
			continue
		}
		name := quote(t.name)
		if n > 1 {
			name += " and others"
		}
		l.report(Decisions, t.line, "the group for %s takes the place of the group for *, so %s on line %d does not hold here; repeated in this group, it would", name, quote(forAll[i].String()), forAll[i].line)
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

// A judge decides about paths that show what a rule does.
type judge struct {
	file              *robotstxt.File
	effort            robotstxt.Effort
	efforts, verdicts int
}

// maxEfforts and maxVerdicts bound how long a judge decides, to some 100 milliseconds each. That is
// enough for files that people write.
const (
	maxEfforts  = 4
	maxVerdicts = 50000
)

// misses reports whether a rule for * denies paths about which the groups of a crawler say nothing.
// It looks at two: one as short as the rule matches, and, since that may be too short for a rule of the
// crawler, a longer one.
func (j *judge) misses(r lintRule, token string) bool {
	if j.spent() {
		return false
	}
	path, anchored := strings.CutSuffix(r.core, "$")
	path = "/" + strings.TrimPrefix(strings.ReplaceAll(path, "*", "x"), "/")
	if j.decide(path).Allowed || j.decide(path, token).Reason != robotstxt.NoMatch {
		return false
	}
	return anchored || j.decide(path+"/x", token).Reason == robotstxt.NoMatch
}

// decide decides, or denies because it may take no longer.
func (j *judge) decide(path string, tokens ...string) robotstxt.Verdict {
	if j.verdicts == 0 || j.effort.Exhausted() {
		j.efforts++
		j.effort = robotstxt.NewEffort()
	}
	j.verdicts++
	return j.file.DecideWithin(&j.effort, path, tokens...)
}

// spent reports whether the judge has decided long enough.
func (j *judge) spent() bool { return j.verdicts > maxVerdicts || j.efforts > maxEfforts }
