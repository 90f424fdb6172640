package store

import (
	"container/list"
	"sync"

	"robotsgate/policy"
)

// A Memory is a policy.Store for a process that has no folder of its own. It
// forgets what has not been asked for longest when it holds more bytes than
// it may.
type Memory struct {
	most int64

	mu    sync.Mutex
	bytes int64
	order list.List // of *kept, the last used in front
	index map[string]*list.Element
}

type kept struct {
	origin string
	rec    policy.Record
	size   int64
}

// NewMemory returns an empty store that holds about so many bytes at most.
func NewMemory(most int64) *Memory {
	return &Memory{most: most, index: map[string]*list.Element{}}
}

// Load returns the record of an origin.
func (m *Memory) Load(origin string) (policy.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.index[origin]
	if e == nil {
		return policy.Record{}, false
	}
	m.order.MoveToFront(e)
	return e.Value.(*kept).rec, true
}

// Save keeps the records. It never fails.
func (m *Memory) Save(records map[string]policy.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for origin, rec := range records {
		m.forget(m.index[origin])
		if rec.Empty() {
			continue
		}
		k := &kept{origin, rec, size(origin, rec)}
		m.index[origin] = m.order.PushFront(k)
		m.bytes += k.size
	}
	for m.bytes > m.most && m.order.Len() > 0 {
		m.forget(m.order.Back())
	}
	return nil
}

func (m *Memory) forget(e *list.Element) {
	if e == nil {
		return
	}
	k := m.order.Remove(e).(*kept)
	delete(m.index, k.origin)
	m.bytes -= k.size
}

func size(origin string, rec policy.Record) int64 {
	const place = 300 // in the index and in the order
	n := place + 2*len(origin) + rec.Size()
	if rec.Good != nil {
		n += len(rec.Good.Body)
	}
	return int64(n)
}
