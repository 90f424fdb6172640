package cli

import (
	"fmt"
	"strings"
	"sync"

	"robotsgate/internal/console"
	"robotsgate/internal/record"
)

// maxHosts bounds the hosts that a summary distinguishes.
const maxHosts = 100_000

// A summary counts the requests of run's command.
type summary struct {
	mu       sync.Mutex
	requests int
	denied   int
	reported int // that would be denied
	hosts    map[string]bool
	givenUp  bool // a client gave up a connection before its first request
}

// count counts a request that is over.
func (c *summary) count(x *record.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.Unused != "" {
		c.givenUp = true
		return
	}
	c.requests++
	switch {
	case x.Denied():
		c.denied++
	case x.Kind() != "":
		c.reported++
	}
	if _, host, ok := strings.Cut(x.Origin, "://"); ok && len(c.hosts) < maxHosts {
		c.hosts[host] = true
	}
}

// String returns the counts in one line.
func (c *summary) String() string {
	text := fmt.Sprintf("%s, %d denied", console.Plural(c.requests, "request"), c.denied)
	if c.reported > 0 {
		text += fmt.Sprintf(", %d would be denied", c.reported)
	}
	return text + ", " + console.Plural(len(c.hosts), "host")
}
