package robotstag

import (
	"slices"
	"strings"
)

// Bounds on Tags.Unknown. Rules have none of their own: a field is at most MaxField bytes
// long, and a <meta> has only one scope.
const (
	maxUnknown     = 32
	maxUnknownWord = 64
)

// A collector gathers rules, keeping the strictest of each kind.
type collector struct {
	tags Tags
	seen map[seenKey]int // index into tags.Rules, if there are more than fewRules
}

// fewRules is how many rules are found faster without a map.
const fewRules = 16

// Rules with the same seenKey restrict the same thing for the same crawlers, so only the
// strictest of them is kept.
type seenKey struct {
	name   string
	source Source
	scope  string // in lower case
}

func (c *collector) add(r Rule) {
	key := keyOf(r)
	i, ok := c.seen[key]
	if c.seen == nil {
		i = slices.IndexFunc(c.tags.Rules, func(r Rule) bool { return keyOf(r) == key })
		ok = i >= 0
	}
	switch {
	case !ok:
		c.tags.Rules = append(c.tags.Rules, r)
		c.index()
	case stricter(r, c.tags.Rules[i]):
		// The slice is the collector's own, so no other Tags change.
		r.Scope = c.tags.Rules[i].Scope
		c.tags.Rules[i] = r
	}
}

// index adds the rules that are not in seen yet.
func (c *collector) index() {
	if len(c.tags.Rules) <= fewRules {
		return
	}
	if c.seen == nil {
		c.seen = make(map[seenKey]int)
	}
	for i := len(c.seen); i < len(c.tags.Rules); i++ {
		c.seen[keyOf(c.tags.Rules[i])] = i
	}
}

func keyOf(r Rule) seenKey {
	if r.Global() {
		return seenKey{r.Name, r.Source, "*"}
	}
	return seenKey{r.Name, r.Source, strings.ToLower(r.Scope)}
}

// unknown keeps a word that is neither a rule nor a scope.
func (c *collector) unknown(word string) {
	if word == "" || len(c.tags.Unknown) >= maxUnknown {
		return
	}
	if len(word) > maxUnknownWord {
		word = strings.ToValidUTF8(word[:maxUnknownWord], "")
	}
	if slices.Contains(c.tags.Unknown, word) {
		return
	}
	// The clone does not keep the whole field in memory.
	c.tags.Unknown = append(c.tags.Unknown, strings.Clone(word))
}
