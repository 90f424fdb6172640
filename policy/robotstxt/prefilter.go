package robotstxt

import (
	"math/bits"
	"strings"
)

// A sieve finds those of many rules with the same literal beginning, most often
// "/*", that a path may match. To look at all of them would do, but some sites have
// thousands.
//
// What stands between the stars of a pattern must be in the path. So each rule is
// put under a gram, some octets of its pattern, and those of the path are looked up:
// a hash table leads to the rules, which are chained by their field up. Of a pattern
// that ends in $ it is the gram before that, which can only be the path's last. A rule
// that has no gram, or only such as others have already taken, is looked at always.
type sieve struct {
	table  uint32 // where in File.sifted the table begins
	bits   uint8  // of a hash that choose a slot
	sizes  uint8  // bit n: some grams have n octets
	ends   uint8  // the same of grams at the end
	rest   uint32 // the chain of rules that are looked at always
	parent uint32 // what field up would be, if there were no sieve
}

const (
	sieveFrom = 32 // rules that make a sieve worth its memory
	maxGram   = 4
	atEnd     = 0x5EED // sets the hashes of grams at the end apart
	maxChain  = 16

	// A link in a chain is one more than the index of a rule, so that zero ends
	// it, and above that eight bits of the hash of the rule's gram.
	linkBits = 24
	linkMask = 1<<linkBits - 1
)

// gramSeed multiplies as Knuth suggests. It is not random, since the number of steps
// of a decision must be the same everywhere. A site may choose grams that fall into one
// slot, but no more than maxChain rules are put there.
const gramSeed = 2654435769

// hashGram hashes the last size of four octets, the first of which are the lowest.
func hashGram(octets uint32, size int) uint32 {
	return (octets>>(32-8*size) + uint32(size)) * gramSeed
}

// hashEnd hashes the last size octets of s, apart from those that stand anywhere.
func hashEnd(s string, size int) uint32 {
	octets := uint32(0)
	for i := len(s) - size; i < len(s); i++ {
		octets = octets>>8 | uint32(s[i])<<24
	}
	return (octets>>(32-8*size) + uint32(size) + atEnd) * gramSeed
}

// slot and tag are the two parts of a hash.
func (v *sieve) slot(hash uint32) uint32 { return hash >> (32 - v.bits) }
func (v *sieve) tag(hash uint32) uint32  { return hash << v.bits >> linkBits }

// sift makes a sieve of rules[start:end], which have the same literal beginning and
// ascend by rank. The last of them leads to it, and is looked at always.
func (x *indexer) sift(rules []rule, start, end int) {
	f := x.file
	last := &rules[end-1]
	v := sieve{
		table:  uint32(len(f.sifted)),
		bits:   uint8(bits.Len(uint(end-start)) + 1),
		parent: last.up,
	}
	f.sifted = append(f.sifted, make([]uint32, 1<<v.bits)...)
	x.loads = append(x.loads[:0], make([]uint8, 1<<v.bits)...)
	for i := start; i < end-1; i++ {
		r := &rules[i]
		chain := &v.rest
		tag := uint32(0)
		rest := f.pattern(r)[f.literalLen(r):]
		if hash, size, ok := v.last(rest, x.loads); ok {
			v.ends |= 1 << size
			x.loads[v.slot(hash)]++
			chain = &f.sifted[v.table+v.slot(hash)]
			tag = v.tag(hash)
		} else if hash, size, ok := v.lightest(rest, x.loads); ok {
			v.sizes |= 1 << size
			x.loads[v.slot(hash)]++
			chain = &f.sifted[v.table+v.slot(hash)]
			tag = v.tag(hash)
		}
		r.up = *chain // which so descends by rank
		*chain = tag<<linkBits | uint32(i+1)
	}
	last.up = uint32(len(f.sieves))
	last.size |= sifted
	f.sieves = append(f.sieves, v)
}

// last returns the hash of the gram that ends a pattern which ends in $, unless too
// many rules are under it already. Rest is the pattern without its literal beginning.
func (v *sieve) last(rest string, loads []uint8) (hash uint32, size int, ok bool) {
	rest, anchored := strings.CutSuffix(rest, "$")
	segment := rest[strings.LastIndexByte(rest, '*')+1:]
	if size = min(len(segment), maxGram); !anchored || size < 2 {
		return 0, 0, false
	}
	hash = hashEnd(segment, size)
	return hash, size, loads[v.slot(hash)] < maxChain
}

// lightest returns the hash of that gram of rest, a pattern without its literal
// beginning, under which the fewest rules are. Grams are as long as they can be.
func (v *sieve) lightest(rest string, loads []uint8) (hash uint32, size int, ok bool) {
	rest = strings.TrimSuffix(rest, "$")
	for segment := range strings.SplitSeq(rest, "*") {
		size = max(size, min(len(segment), maxGram))
	}
	if size < 2 {
		return 0, 0, false
	}
	least := uint8(maxChain)
	for segment := range strings.SplitSeq(rest, "*") {
		octets := uint32(0)
		for i := range len(segment) {
			octets = octets>>8 | uint32(segment[i])<<24
			if i+1 < size {
				continue
			}
			h := hashGram(octets, size)
			if load := loads[v.slot(h)]; load < least {
				hash, least, ok = h, load, true
			}
		}
	}
	return hash, size, ok
}

// sift looks at those of rules that v lets through.
func (c *candidate) sift(v *sieve, rules []rule, literal int, path string) {
	for link := v.rest; link != 0; {
		r := &rules[link&linkMask-1]
		if c.file.rank(r) <= c.rank || c.Steps < 0 || c.consider(r, literal, path) {
			break
		}
		link = r.up
	}
	tail := path[literal:]
	table := c.file.sifted[v.table:][:1<<v.bits]
	for size := 2; size <= min(len(tail), maxGram); size++ {
		if v.ends&(1<<size) != 0 {
			hash := hashEnd(tail, size)
			c.chain(table[v.slot(hash)], v.tag(hash), rules, literal, path)
		}
	}
	for size := 2; size <= maxGram; size++ {
		if v.sizes&(1<<size) == 0 {
			continue
		}
		octets, links := uint32(0), 0
		for i := range len(tail) {
			octets = octets>>8 | uint32(tail[i])<<24
			if i+1 < size {
				continue
			}
			hash := hashGram(octets, size)
			for link := table[v.slot(hash)]; link != 0; link = rules[link&linkMask-1].up {
				links++
				if link>>linkBits == v.tag(hash) {
					c.follow(link, v.tag(hash), i+1-size, size, rules, literal, path)
					break
				}
			}
			if c.Steps < links {
				c.Steps = -1
				return
			}
		}
		c.Steps -= len(tail) + links
	}
}

// follow looks at the rules of a chain that were put under the gram at path[at:],
// after the literal beginning. Rules that the same gram has led to before are not
// looked at again.
func (c *candidate) follow(link, tag uint32, at, size int, rules []rule, literal int, path string) {
	tail := path[literal:]
	c.Steps -= at
	if c.Steps >= 0 && strings.Index(tail, tail[at:][:size]) == at {
		c.chain(link, tag, rules, literal, path)
	}
}

// chain looks at those rules of a chain that have this tag.
func (c *candidate) chain(link, tag uint32, rules []rule, literal int, path string) {
	for link != 0 && c.Steps >= 0 {
		r := &rules[link&linkMask-1]
		if link>>linkBits == tag {
			c.consider(r, literal, path)
		}
		link = r.up
	}
}
