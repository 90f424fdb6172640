package origin

import (
	"errors"
	"sync"
	"time"

	"robotsgate/policy"
)

// maxNames bounds what is remembered of names, each of which a client has chosen.
const maxNames = 4096

// A nameCache remembers for a minute what the guard found behind a name, since
// looking it up for every request would make a parent proxy slow. It forgets all when there
// are too many.
type nameCache struct {
	mu    sync.Mutex
	known map[string]verdict
}

type verdict struct {
	err   error
	until time.Time
}

func (c *nameCache) get(key string, judge func() error) error {
	now := time.Now()
	c.mu.Lock()
	v, ok := c.known[key]
	c.mu.Unlock()
	if ok && now.Before(v.until) {
		return v.err
	}
	v = verdict{judge(), now.Add(time.Minute)}
	if errors.Is(v.err, policy.ErrExhausted) {
		return v.err // it says nothing about the name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxNames {
		c.known = map[string]verdict{}
	}
	c.known[key] = v
	return v.err
}

// A hostSet remembers hosts. It forgets all of them when there are too many.
type hostSet struct {
	mu    sync.RWMutex
	hosts map[string]bool
}

func (s *hostSet) has(host string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.hosts[host]
}

func (s *hostSet) add(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil || len(s.hosts) >= maxNames {
		s.hosts = map[string]bool{}
	}
	s.hosts[host] = true
}
