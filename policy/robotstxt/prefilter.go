package robotstxt

import (
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// A prefilter finds, among many rules with the same literal beginning, most often "/*",
// the few that a path may match. Some sites have thousands of them.
//
// The text between the wildcards of a pattern must occur in the path. So each rule is
// listed under a gram, gramSize octets of that text, and the grams of the path are looked
// up.
type prefilter struct {
	rules []rule           // the run, which ascends by rank
	heads map[uint32]int32 // by gram: one more than the place of the best rule listed under it
	next  []int32          // by rule: the same for the next best rule with its gram; 0: none
}

const gramSize = 4

// noGram lists the rules that may match any path. A path has no NUL.
const noGram = 0

func newPrefilter(rules []rule) *prefilter {
	p := &prefilter{rules, map[uint32]int32{}, make([]int32, len(rules))}
	listed := map[uint32]int{} // rules under each gram
	for i := range rules {
		gram := rarestGram(rules[i].pattern, listed)
		listed[gram]++
		p.next[i], p.heads[gram] = p.heads[gram], int32(i+1)
	}
	return p
}

// rarestGram returns the gram of a pattern under which the fewest rules are listed. The
// literal beginning does not count: all rules of a prefilter share it.
func rarestGram(pattern string, listed map[uint32]int) (rarest uint32) {
	rest := strings.TrimSuffix(pattern[match.LiteralLen(pattern):], "$")
	for segment := range strings.SplitSeq(rest, "*") {
		gram := uint32(0)
		for i := range len(segment) {
			gram = gram<<8 | uint32(segment[i])
			if i+1 >= gramSize && (rarest == noGram || listed[gram] < listed[rarest]) {
				rarest = gram
			}
		}
	}
	return rarest
}

// tryFiltered considers the rules that p lets through. The literal beginning that they
// share is known to match.
func (c *candidate) tryFiltered(p *prefilter, literal int, path string) {
	c.tryListed(p, noGram, literal, path)
	tail := path[literal:]
	gram := uint32(0)
	for i := 0; i < len(tail) && c.Steps >= 0; i++ {
		c.Steps -= 4 // for the map
		gram = gram<<8 | uint32(tail[i])
		if at := i + 1 - gramSize; at >= 0 && p.heads[gram] != 0 {
			// Where a gram occurs again, its rules have been considered.
			if c.Steps -= at; strings.Index(tail, tail[at:i+1]) == at {
				c.tryListed(p, gram, literal, path)
			}
		}
	}
}

// tryListed considers the rules listed under a gram, the best first, until one matches.
func (c *candidate) tryListed(p *prefilter, gram uint32, literal int, path string) {
	for next := p.heads[gram]; next != 0 && c.Steps >= 0; next = p.next[next-1] {
		if !c.consider(&p.rules[next-1], literal, path) {
			return
		}
	}
}
