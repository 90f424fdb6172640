// Package outcomes counts requests by what became of them, for what serve and run print about them.
package outcomes

import (
	"fmt"
	"hash/maphash"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"robotsgate/internal/console"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// maxTargets bounds the targets that a counter distinguishes, since clients may request
// any number of them.
const maxTargets = 100_000

// A Counter counts requests by their outcome, and their distinct targets.
type Counter struct {
	target func(*proxy.Record) string // the target of a request; "": none to count
	word   string                     // for a target

	mu          sync.Mutex
	requests    int
	denied      int
	reported    int                   // that would be denied
	unreachable int                   // of those denied or reported
	refused     map[proxy.Refusal]int // denied, by kind; without the kinds rule and unreachable
	seed        maphash.Seed
	targets     map[uint64]struct{} // hashes
	rate        console.Rate
}

// NewCounter returns a counter of requests and of their targets, for which there is a word.
func NewCounter(word string, target func(*proxy.Record) string) *Counter {
	return &Counter{word: word, target: target, seed: maphash.MakeSeed(), targets: map[uint64]struct{}{}, refused: map[proxy.Refusal]int{}, rate: console.NewRate()}
}

// Host returns the host that a request names.
func Host(x *proxy.Record) string {
	u, err := url.Parse(x.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Origin returns the robots.txt that decided a request. There is one for each origin.
func Origin(x *proxy.Record) string {
	if x.Decision == nil {
		return ""
	}
	return x.Decision.RobotsURL
}

// Count counts a request that is over. A tunnel that carried none is not counted.
func (c *Counter) Count(x *proxy.Record) {
	if x.Unused != "" {
		return
	}
	target := c.target(x)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if target != "" && len(c.targets) < maxTargets {
		c.targets[maphash.String(c.seed, target)] = struct{}{}
	}
	kind := x.Kind()
	switch {
	case kind == "":
		return
	case x.Refused != "":
		c.denied++
	default:
		c.reported++
	}
	switch {
	case kind == proxy.Refusal(policy.IsUnreachable):
		c.unreachable++
	case x.Refused != "" && kind != proxy.Refusal(policy.ByRule):
		c.refused[kind]++
	}
}

// None reports whether no request was counted.
func (c *Counter) None() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests == 0
}

// Summary returns the counts in one line, with the rate since its last call if that is asked for.
func (c *Counter) Summary(withRate bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text strings.Builder
	text.WriteString(console.Plural(c.requests, "request"))
	if withRate {
		fmt.Fprintf(&text, " (%d/s)", c.rate.PerSecond(int64(c.requests)))
	}
	fmt.Fprintf(&text, ", %d denied", c.denied)
	if c.reported > 0 {
		fmt.Fprintf(&text, ", %d would be denied", c.reported)
	}
	if c.unreachable > 0 {
		fmt.Fprintf(&text, ", %d of them unreachable", c.unreachable)
	}
	text.WriteString(", ")
	if len(c.targets) == maxTargets {
		text.WriteString("at least ")
	}
	text.WriteString(console.Plural(len(c.targets), c.word))
	for i, kind := range slices.Sorted(maps.Keys(c.refused)) {
		if i == 0 {
			text.WriteString("; denied by")
		} else {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, " %s: %d", kind, c.refused[kind])
	}
	return text.String()
}
