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
	octets int    // of its normal form
	rank   int    // twice that, one more if it allows: where both match, the higher rank decides
	text   string // as written
	core   string // its normal form without wildcards that do nothing; "" matches everything
}

func newLintRule(s *syntax.Scanner) lintRule {
	normal := match.Normal(s.Value)
	r := lintRule{allow: s.Name == syntax.Allow, line: s.Line, octets: len(normal), rank: 2 * len(normal), text: s.Value}
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

// wild reports whether r may match all that a rule does which it beats: it has octets that
// make it longer but not narrower, or stars that match text.
func (r *lintRule) wild() bool {
	return r.octets > max(len(r.core), 1) || strings.Contains(r.core, "*")
}

// redundant reports the rules of a section that never decide: a rule that repeats another,
// and a rule that matches only where another that beats it does as well.
func (l *linter) redundant(rules []lintRule) {
	best := bestOf(rules)
	broad := broadest(rules)
	for i := range rules {
		r := &rules[i]
		b := best[r.core]
		if b != r && b.allow == r.allow {
			l.report(r.line, "the rule says the same as the one on line %d; remove this one", b.line)
			continue
		}
		if b == r {
			if b = l.broader(r, broad); b == nil {
				continue
			}
		}
		if b.octets == r.octets {
			l.report(r.line, "the rule never decides, since %s on line %d matches all that it does and Allow goes first where both are as long; remove one of them", quote(b.String()), b.line)
		} else {
			l.report(r.line, "the rule never decides, since %s on line %d matches all that it does and is longer; remove one of them", quote(b.String()), b.line)
		}
	}
}

// bestOf returns, for each core, the first of the rules with this core that no other of
// them beats.
func bestOf(rules []lintRule) map[string]*lintRule {
	best := make(map[string]*lintRule, len(rules))
	for i := range rules {
		r := &rules[i]
		if b := best[r.core]; b == nil || r.rank > b.rank {
			best[r.core] = r
		}
	}
	return best
}

// broadest returns the rules that may be broader than one they beat. Rules that beat
// others come first.
func broadest(rules []lintRule) (broad []*lintRule) {
	for i := range rules {
		if rules[i].wild() {
			broad = append(broad, &rules[i])
		}
	}
	slices.SortStableFunc(broad, func(a, b *lintRule) int { return b.rank - a.rank })
	return broad
}

// broader returns one of the rules in broad that matches whatever r does and beats
// it, nil if there is none.
//
// A rule does if it matches the pattern of r as a path, with an octet that no pattern has
// in place of every star: only a star matches such an octet, and a star also matches
// anything in its place. The end of r, unless it is fixed, stands for anything too.
func (l *linter) broader(r *lintRule, broad []*lintRule) *lintRule {
	if len(broad) == 0 || broad[0].rank <= r.rank || match.ComparesQuery(r.core) {
		return nil // the second comparison of queries is not considered
	}
	path, anchored := strings.CutSuffix(strings.ReplaceAll(r.core, "*", "\x00"), "$")
	if !anchored {
		path += "\x00"
	}
	if path[0] == 0 && !strings.HasPrefix(path, "\x00/") {
		path = "/" + path // every path begins with a slash, which the star matches
	}
	unbounded := match.Finder{Steps: math.MaxInt} // maxLintWork is the bound
	for _, b := range broad {
		if b.rank <= r.rank || l.work > maxLintWork {
			return nil
		}
		n := match.LiteralLen(b.core)
		l.work += 4 + n
		if !strings.HasPrefix(path, b.core[:n]) {
			continue
		}
		l.work += len(path) + len(b.core)
		if b.core != r.core && unbounded.MatchWild(b.core[n:], path[n:]) {
			return b
		}
	}
	return nil
}
