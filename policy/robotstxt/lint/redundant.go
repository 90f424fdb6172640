package lint

import (
	"math"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/robotstxt/internal/match"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// maxLintWork bounds the search for broader rules: about that many octets are
// compared. It is enough for files that people write; a generated file with
// thousands of stars is not compared to the end.
const maxLintWork = 16 << 20

// A lintRule is a rule among the others of its section.
type lintRule struct {
	allow  bool
	line   int
	rank   int       // twice the octets of its normal form, one more if it allows: the highest decides
	text   string    // as written
	core   string    // its normal form without wildcards that do nothing; "" matches everything
	better *lintRule // one of a higher rank that matches all that this one does
}

func newLintRule(s *syntax.Scanner) lintRule {
	normal := normalForm(s.Value)
	r := lintRule{allow: s.Name == syntax.Allow, line: s.Line, rank: 2 * len(normal), text: s.Value}
	if r.allow {
		r.rank++
	}
	if r.core = stars.ReplaceAllString(withoutTail(normal), "*"); r.core == "/" {
		r.core = "" // so does "*"
	}
	return r
}

func (r *lintRule) String() string {
	return robotstxt.Rule{Allow: r.allow, Pattern: r.text}.String()
}

// wild reports whether r may match all that a rule of a lower rank does: it has octets that
// make it longer but not narrower, or stars that match text.
func (r *lintRule) wild() bool {
	return r.rank/2 > max(len(r.core), 1) || strings.Contains(r.core, "*")
}

// redundant reports the rules of a section that never decide: a rule that repeats another,
// and a rule that matches only where another that beats it does as well.
func (l *linter) redundant(rules []lintRule) {
	ranked := make([]*lintRule, len(rules))
	for i := range rules {
		ranked[i] = &rules[i]
	}
	slices.SortStableFunc(ranked, func(a, b *lintRule) int { return b.rank - a.rank })
	best := map[string]*lintRule{} // by core
	var broad []*lintRule
	for _, r := range ranked {
		if r.better = best[r.core]; r.better == nil {
			best[r.core] = r
			r.better = l.broader(r, broad)
		}
		if r.wild() {
			broad = append(broad, r)
		}
	}
	for i := range rules {
		r := &rules[i]
		b := r.better
		if b == nil {
			continue
		}
		rank, why := Decisions, "is longer"
		if b.allow == r.allow {
			rank = Taste // it is redundant
		}
		if b.rank/2 == r.rank/2 {
			why = "Allow goes first where both are as long"
		}
		if b.core == r.core && b.allow == r.allow {
			l.report(Taste, r.line, "the rule says the same as the one on line %d", b.line)
			continue
		}
		l.report(rank, r.line, "the rule never decides, since %s on line %d matches all that it does and "+why, quote(b.String()), b.line)
	}
}

// broader returns the first of the rules in broad, the best first, that matches whatever r does
// and beats it; nil if there is none.
//
// A rule does if it matches the pattern of r as a path, with an octet that no pattern has
// in place of every star: only a star matches such an octet, and a star also matches
// anything in its place. The end of r, unless it is fixed, stands for anything too.
func (l *linter) broader(r *lintRule, broad []*lintRule) *lintRule {
	if len(broad) == 0 || match.HasEscapes(match.Pattern(r.core)) {
		return nil // what the place in a URL decides is not considered
	}
	text, anchored := strings.CutSuffix(strings.ReplaceAll(r.core, "*", "\x00"), "$")
	if !anchored {
		text += "\x00"
	}
	if text[0] == 0 && !strings.HasPrefix(text, "\x00/") {
		text = "/" + text // every path begins with a slash, which the star matches
	}
	path := match.NewPath(text)
	for _, b := range broad {
		if b.rank <= r.rank || l.work > maxLintWork {
			return nil
		}
		steps := math.MaxInt // maxLintWork is the bound
		pattern := match.Pattern(b.core)
		matches := path.Matches(pattern, &steps)
		if l.work += 4 + len(pattern) + math.MaxInt - steps; matches {
			return b
		}
	}
	return nil
}
