package cli

import (
	"fmt"
	"hash/maphash"
	"net/url"
	"sync"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// maxTargets bounds the targets that a counter distinguishes, since clients may request
// any number of them.
const maxTargets = 100_000

// A counter counts requests by their outcome, and their distinct targets.
type counter struct {
	target func(*proxy.Record) string // the host or origin of a request; "": none to count

	mu          sync.Mutex
	requests    int
	denied      int
	reported    int // that would be denied
	unreachable int // of those denied or reported
	seed        maphash.Seed
	targets     map[uint64]struct{} // hashes
}

func newCounter(target func(*proxy.Record) string) *counter {
	return &counter{target: target, seed: maphash.MakeSeed(), targets: map[uint64]struct{}{}}
}

func hostOf(x *proxy.Record) string {
	u, err := url.Parse(x.URL)
	if err != nil {
		return ""
	}
	return u.Host
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

// targetsLocked returns the number of targets, in words, for a caller that holds mu.
func (c *counter) targetsLocked(word string) string {
	if len(c.targets) == maxTargets {
		return "at least " + plural(maxTargets, word)
	}
	return plural(len(c.targets), word)
}

// deniedLocked returns the denied and reported requests, in words, for a caller that holds mu.
func (c *counter) deniedLocked() string {
	text := fmt.Sprintf("%d denied", c.denied)
	if c.reported > 0 {
		text += fmt.Sprintf(", %d would be denied", c.reported)
	}
	return text
}

// String returns a summary of one line.
func (c *counter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%s, %s, %s", plural(c.requests, "request"), c.deniedLocked(), c.targetsLocked("host"))
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
