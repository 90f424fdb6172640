package cli

import (
	"fmt"
	"hash/maphash"
	"net/url"
	"sync"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// maxTargets bounds the targets that a counter distinguishes, since clients may request
// any number of them.
const maxTargets = 100_000

// A counter counts requests by their outcome, and their distinct targets.
type counter struct {
	target func(*proxy.Record) string // the target of a request; "": none to count
	word   string                     // for a target

	mu          sync.Mutex
	requests    int
	denied      int
	reported    int // that would be denied
	unreachable int // of those denied or reported
	seed        maphash.Seed
	targets     map[uint64]struct{} // hashes
	rate        rate
}

func newCounter(word string, target func(*proxy.Record) string) *counter {
	return &counter{word: word, target: target, seed: maphash.MakeSeed(), targets: map[uint64]struct{}{}, rate: rate{at: time.Now()}}
}

// hostOf returns the host that a request names.
func hostOf(x *proxy.Record) string {
	u, err := url.Parse(x.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// originOf returns the robots.txt that decided a request. There is one for each origin.
func originOf(x *proxy.Record) string {
	if x.Decision == nil {
		return ""
	}
	return x.Decision.URL
}

// count counts a request that is over.
func (c *counter) count(x *proxy.Record) {
	target := c.target(x)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if target != "" && len(c.targets) < maxTargets {
		c.targets[maphash.String(c.seed, target)] = struct{}{}
	}
	d := x.Decision
	switch {
	case d == nil || d.Allow:
		return
	case d.Enforced:
		c.denied++
	default:
		c.reported++
	}
	if d.Reason == policy.IsUnreachable {
		c.unreachable++
	}
}

// summary returns the counts in one line, with the rate since its last call if that is asked for.
func (c *counter) summary(withRate bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := plural(c.requests, "request")
	if withRate {
		text += fmt.Sprintf(" (%d/s)", c.rate.perSecond(int64(c.requests)))
	}
	text += fmt.Sprintf(", %d denied", c.denied)
	if c.reported > 0 {
		text += fmt.Sprintf(", %d would be denied", c.reported)
	}
	if c.unreachable > 0 {
		text += fmt.Sprintf(", %d of them unreachable", c.unreachable)
	}
	text += ", "
	if len(c.targets) == maxTargets {
		text += "at least "
	}
	return text + plural(len(c.targets), c.word)
}
