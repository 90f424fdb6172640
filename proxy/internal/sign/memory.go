package sign

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// Bounds on a Memory.
const (
	maxPairs = 10_000 // of one crawler
	kept     = 24 * time.Hour
)

// A Memory keeps which origins have asked which crawlers for signatures: 10,000 origins for each crawler, each for 24 hours
// after it last asked. If there are more, the one that asked this crawler longest ago is dropped, so that no crawler can
// make the gate forget what another was asked. The zero value is empty and ready for use. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	pairs map[Pair]*list.Element
	order map[string]*list.List // by crawler, of *asked, the one that was asked for longest ago first
}

// A Pair is a crawler and an origin: scheme, host and port.
type Pair struct{ Crawler, Scheme, Host string }

type asked struct {
	Pair
	at time.Time
}

// Add notes that an origin asks a crawler at a time, which must not be before that of an earlier call.
func (m *Memory) Add(p Pair, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pairs[p]; e != nil {
		e.Value.(*asked).at = at
		m.order[p.Crawler].MoveToBack(e)
		return
	}
	if m.pairs == nil {
		m.pairs, m.order = map[Pair]*list.Element{}, map[string]*list.List{}
	}
	// The strings may be parts of a long request line, which would stay in memory with them.
	p = Pair{strings.Clone(p.Crawler), strings.Clone(p.Scheme), strings.Clone(p.Host)}
	if m.order[p.Crawler] == nil {
		m.order[p.Crawler] = list.New()
	}
	order := m.order[p.Crawler]
	m.pairs[p] = order.PushBack(&asked{p, at})
	if order.Len() > maxPairs {
		m.removeLocked(order.Front())
	}
}

// Has reports whether an origin has asked a crawler within the 24 hours before now.
func (m *Memory) Has(p Pair, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pairs[p]
	if e == nil {
		return false
	}
	if now.Sub(e.Value.(*asked).at) < kept {
		return true
	}
	m.removeLocked(e)
	return false
}

// Len returns the number of pairs.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pairs)
}

// removeLocked removes a pair, for callers that hold mu.
func (m *Memory) removeLocked(e *list.Element) {
	p := e.Value.(*asked).Pair
	order := m.order[p.Crawler]
	order.Remove(e)
	delete(m.pairs, p)
	if order.Len() == 0 {
		delete(m.order, p.Crawler)
	}
}
