package robotstag

import (
	"slices"
	"strings"
)

// Bounds on what is kept for people to read. Rules have none of their own: a
// field is at most MaxField bytes long, and a <meta> has only one scope.
const (
	maxUnknown     = 32
	maxUnknownWord = 64
)

// A collector gathers rules, keeping the strictest of each kind.
type collector struct {
	tags Tags
	seen map[seenKey]int // index into tags.Rules, once there are many

	// The scopes handed in are parts of a longer string, which a remembered
	// rule must not keep alive.
	borrowed bool
}

type seenKey struct {
	name   string
	source Source
	scope  string
}

// fewRules is how many rules are searched one by one before a map is made.
// Ordinary fields stay below; a hostile one with a thousand scopes must not
// cost a million comparisons.
const fewRules = 24

func (c *collector) add(r Rule) {
	i := c.find(r)
	if i < 0 {
		if c.tags.Rules == nil {
			c.tags.Rules = make([]Rule, 0, 4)
		}
		if c.seen != nil {
			c.seen[keyOf(r)] = len(c.tags.Rules)
		}
		if c.borrowed {
			r.Scope = c.own(r.Scope)
		}
		c.tags.Rules = append(c.tags.Rules, r)
		return
	}
	if stricter(r, c.tags.Rules[i]) {
		// The slice is the collector's own, so no other Tags change.
		r.Scope = c.tags.Rules[i].Scope
		c.tags.Rules[i] = r
	}
}

// own returns a copy of a scope, the one of the last rule if it is the same.
func (c *collector) own(scope string) string {
	if scope == "*" {
		return "*"
	}
	if n := len(c.tags.Rules); n > 0 && c.tags.Rules[n-1].Scope == scope {
		return c.tags.Rules[n-1].Scope
	}
	return strings.Clone(scope)
}

func (c *collector) find(r Rule) int {
	if len(c.tags.Rules) < fewRules {
		for i := range c.tags.Rules {
			if c.tags.Rules[i].same(r) {
				return i
			}
		}
		return -1
	}
	if c.seen == nil {
		c.seen = make(map[seenKey]int)
		for i, r := range c.tags.Rules {
			c.seen[keyOf(r)] = i
		}
	}
	if i, ok := c.seen[keyOf(r)]; ok {
		return i
	}
	return -1
}

func keyOf(r Rule) seenKey {
	if r.Global() {
		return seenKey{r.Name, r.Source, "*"}
	}
	return seenKey{r.Name, r.Source, strings.ToLower(r.Scope)}
}

// unknown remembers a word that means nothing to us.
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
	// Cloned, so that a remembered word doesn't keep its whole field alive.
	c.tags.Unknown = append(c.tags.Unknown, strings.Clone(word))
}
