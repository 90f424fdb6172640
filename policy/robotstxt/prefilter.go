package robotstxt

import (
	"math/bits"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// A prefilter finds, among many rules with the same literal beginning, most often "/*",
// the few that a path may match. Some sites have thousands of them.
//
// The text between the wildcards of a pattern must occur in the path. So each rule is
// listed under a gram, gramSize octets of that text, and the grams of the path are looked
// up in a hash table.
type prefilter struct {
	heads  []int32    // by hash: one more than the place in grams where a list begins
	grams  []gramRule // the lists
	always []int32    // rules without a gram, which may match any path
}

// A gramRule lists a rule, by its place in its section, under a gram. Both lists begin
// with the rule that beats the others.
type gramRule struct {
	gram uint32
	rule int32
	next int32 // one more than the place of the next with the same hash; 0: none
}

const gramSize = 4

// newPrefilter returns the prefilter of rules[start:end], which ascend by rank.
func newPrefilter(rules []rule, start, end int) *prefilter {
	p := &prefilter{
		heads: make([]int32, 2<<bits.Len(uint(end-start))),
		grams: make([]gramRule, 0, end-start),
	}
	listed := map[uint32]int{} // rules under each gram
	for i := start; i < end; i++ {
		gram, ok := rarestGram(rules[i].pattern, listed)
		if !ok {
			p.always = append(p.always, int32(i))
			continue
		}
		listed[gram]++
		head := p.head(gram)
		p.grams = append(p.grams, gramRule{gram, int32(i), *head})
		*head = int32(len(p.grams))
	}
	slices.Reverse(p.always)
	return p
}

// head returns the head of the list for a gram. The hash multiplies as Knuth suggests and
// has no random seed, so that a decision takes the same number of steps everywhere.
func (p *prefilter) head(gram uint32) *int32 {
	return &p.heads[gram*2654435769>>(32-bits.Len(uint(len(p.heads)-1)))]
}

// rarestGram returns the gram of a pattern under which the fewest rules are listed. The
// literal beginning does not count: all rules of a prefilter share it.
func rarestGram(pattern string, listed map[uint32]int) (rarest uint32, ok bool) {
	rest := strings.TrimSuffix(pattern[match.LiteralLen(pattern):], "$")
	for segment := range strings.SplitSeq(rest, "*") {
		gram := uint32(0)
		for i := range len(segment) {
			gram = gram<<8 | uint32(segment[i])
			if i+1 >= gramSize && (!ok || listed[gram] < listed[rarest]) {
				rarest, ok = gram, true
			}
		}
	}
	return rarest, ok
}

// tryFiltered considers the rules that p lets through. The literal beginning that they
// share is known to match.
func (c *candidate) tryFiltered(p *prefilter, rules []rule, literal int, path string) {
	for _, i := range p.always {
		if c.Steps < 0 || !c.consider(&rules[i], literal, path) {
			break
		}
	}
	tail := path[literal:]
	c.Steps -= len(tail)
	gram := uint32(0)
	for i := 0; i < len(tail) && c.Steps >= 0; i++ {
		if gram = gram<<8 | uint32(tail[i]); i+1 < gramSize {
			continue
		}
		at := i + 1 - gramSize
		for next := *p.head(gram); next != 0 && c.Steps >= 0; {
			g := &p.grams[next-1]
			next = g.next
			c.Steps--
			if g.gram != gram || c.rule != nil && !rules[g.rule].beats(c.rule) {
				continue
			}
			// Where a gram occurs again, its rules have been considered.
			c.Steps -= at
			if strings.Index(tail, tail[at:i+1]) < at {
				break
			}
			c.consider(&rules[g.rule], literal, path)
		}
	}
}
