package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"robotsgate/policy/pace"
)

// A memoryServer is a server in memory for tests, with faults. Its clock is that of the process, which
// testing/synctest fakes.
type memoryServer struct {
	mu     sync.Mutex
	faults faults
	calls  int   // see count
	number int64 // the last version or fence, which a flush does not change

	snapshots map[string]*memorySnapshot
	leases    map[string]memoryLease
	clocks    map[string]memoryClock
	notes     []memoryNotice
	notesEnd  time.Time // when notes expire
	gates     map[string]memoryGate
	wrong     map[string]bool // keys with a value of another type
	offset    time.Duration   // of the store's clock
}

// faults are what calls run into, until they are changed. See set.
type faults struct {
	err      error // of all calls
	hang     bool  // calls end with their context
	lose     bool  // calls are executed, but hang instead of an answer
	readOnly bool  // writes fail
}

type (
	memorySnapshot struct {
		stored
		expires time.Time
	}
	memoryLease struct {
		fence   int64
		gate    string
		expires time.Time
	}
	memoryClock struct {
		starts  pace.Starts
		expires time.Time
	}
	memoryNotice struct {
		id   int64
		text []byte
	}
	memoryGate struct {
		at   time.Time
		text []byte
	}
)

func newMemoryServer() *memoryServer {
	m := new(memoryServer)
	m.flush()
	return m
}

// set changes the faults of calls that begin later.
func (m *memoryServer) set(f faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

// count returns how many calls have reached the store.
func (m *memoryServer) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// flush deletes all keys.
func (m *memoryServer) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshots, m.leases, m.clocks = map[string]*memorySnapshot{}, map[string]memoryLease{}, map[string]memoryClock{}
	m.notes, m.gates, m.wrong = nil, map[string]memoryGate{}, map[string]bool{}
}

// setWrong gives a key a value of another type: NAME:s, NAME:l, NAME:p, fleet:n or fleet:g.
func (m *memoryServer) setWrong(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	m.wrong[key] = true
}

// remove deletes a key.
func (m *memoryServer) remove(key string) {
	name, kind := key[:len(key)-2], key[len(key)-1]
	switch kind {
	case 's':
		delete(m.snapshots, name)
	case 'l':
		delete(m.leases, name)
	case 'p':
		delete(m.clocks, name)
	case 'n':
		m.notes = nil
	case 'g':
		clear(m.gates)
	}
	delete(m.wrong, key)
}

// do executes a call, with the faults.
func (m *memoryServer) do(ctx context.Context, write bool, f func(now time.Time) error) error {
	m.mu.Lock()
	m.calls++
	now, faults := time.Now().Add(m.offset), m.faults
	err := ctx.Err()
	switch {
	case err != nil || faults.hang:
	case faults.err != nil:
		err = faults.err
	case faults.readOnly && write:
		err = errors.New("READONLY You can't write against a read only replica.")
	default:
		err = f(now)
	}
	m.mu.Unlock()
	if faults.hang || faults.lose {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// next returns a version or a fence that follows an old one.
func (m *memoryServer) next(old int64, now time.Time) int64 {
	m.number = max(old+1, m.number+1, now.UnixMicro())
	return m.number
}

// snapshot returns what is stored under a name, which may be nothing.
func (m *memoryServer) snapshot(name string, now time.Time) *memorySnapshot {
	if s := m.snapshots[name]; s != nil && now.Before(s.expires) {
		return s
	}
	return new(memorySnapshot)
}

func (m *memoryServer) load(ctx context.Context, name string, withBody bool) (got stored, err error) {
	err = m.do(ctx, false, func(now time.Time) error {
		if m.wrong[name+":s"] {
			return errWrongType
		}
		got = m.snapshot(name, now).stored
		got.now = time.Duration(now.UnixMicro()) * time.Microsecond
		if !withBody {
			got.body = nil
		}
		got.sealed, got.body = bytes.Clone(got.sealed), bytes.Clone(got.body)
		return nil
	})
	return got, err
}

func (m *memoryServer) save(ctx context.Context, name string, version int64, v value, ttl time.Duration) (saved bool, err error) {
	err = m.do(ctx, true, func(now time.Time) error {
		if m.wrong[name+":s"] {
			m.remove(name + ":s")
		}
		old := m.snapshot(name, now)
		if old.version != version {
			return nil
		}
		s := &memorySnapshot{stored{value{bytes.Clone(v.sealed), bytes.Clone(v.body)}, m.next(old.version, now), 0}, now.Add(ttl)}
		if v.body == nil && version != 0 {
			s.body = old.body
		}
		m.snapshots[name], saved = s, true
		return nil
	})
	return saved, err
}

func (m *memoryServer) lease(name string, now time.Time) memoryLease {
	if l := m.leases[name]; now.Before(l.expires) {
		return l
	}
	return memoryLease{}
}

func (m *memoryServer) acquire(ctx context.Context, name, gate string, ttl time.Duration) (fence int64, err error) {
	err = m.do(ctx, true, func(now time.Time) error {
		if m.wrong[name+":l"] {
			m.remove(name + ":l")
		}
		if l := m.lease(name, now); l.fence != 0 && l.expires.Sub(now) <= 2*ttl {
			return nil
		}
		fence = m.next(0, now)
		m.leases[name] = memoryLease{fence, gate, now.Add(ttl)}
		return nil
	})
	return fence, err
}

func (m *memoryServer) renew(ctx context.Context, name string, fence int64, ttl time.Duration) (renewed bool, err error) {
	err = m.do(ctx, true, func(now time.Time) error {
		l := m.lease(name, now)
		if l.fence == 0 || l.fence != fence {
			return nil
		}
		l.expires = now.Add(ttl)
		m.leases[name], renewed = l, true
		return nil
	})
	return renewed, err
}

func (m *memoryServer) release(ctx context.Context, name string, fence int64) error {
	return m.do(ctx, true, func(now time.Time) error {
		if m.lease(name, now).fence == fence {
			delete(m.leases, name)
		}
		return nil
	})
}

func (m *memoryServer) reserve(ctx context.Context, name string, r pace.Reservation) (g pace.Grant, err error) {
	err = m.do(ctx, true, func(at time.Time) error {
		delete(m.wrong, name+":p")
		now := time.Duration(at.UnixMicro()) * time.Microsecond
		if r.Interval = roundUp(r.Interval).Truncate(time.Microsecond); r.Since > 0 {
			r.Since = r.Since.Truncate(time.Microsecond)
		}
		c := m.clocks[name]
		if !at.Before(c.expires) {
			c.starts = nil
		}
		g = c.starts.Reserve(r, now)
		if len(c.starts) == 0 || c.starts[0].Last == 0 {
			delete(m.clocks, name)
			return nil
		}
		c.expires = at.Add(r.Memory + max(0, c.starts[0].Last-now) + time.Second)
		m.clocks[name] = c
		return nil
	})
	return g, err
}

func (m *memoryServer) expireNotes(now time.Time) {
	if !now.Before(m.notesEnd) {
		m.notes = nil
	}
}

func (m *memoryServer) notify(ctx context.Context, notice []byte) error {
	if len(notice) > maxNotice {
		return fmt.Errorf("%w: a notice of more than %d bytes", errTooLong, maxNotice)
	}
	return m.do(ctx, true, func(now time.Time) error {
		delete(m.wrong, "fleet:n")
		m.expireNotes(now)
		id := now.UnixMicro()
		if n := len(m.notes); n > 0 {
			id = max(id, m.notes[n-1].id+1)
		}
		m.notes = append(m.notes, memoryNotice{id, bytes.Clone(notice)})
		m.notes = m.notes[max(0, len(m.notes)-maxNotices):]
		m.notesEnd = now.Add(noticesTTL)
		return nil
	})
}

func (m *memoryServer) notices(ctx context.Context, after string) (all [][]byte, last string, err error) {
	err = m.do(ctx, false, func(now time.Time) error {
		m.expireNotes(now)
		if m.wrong["fleet:n"] {
			return errWrongType
		}
		var end int64
		if n := len(m.notes); n > 0 {
			end = m.notes[n-1].id
		}
		last = fmt.Sprintf("%d-0", end)
		var from int64
		if _, err := fmt.Sscanf(after, "%d-0", &from); err != nil {
			return err
		}
		if from > end {
			from = 0
		}
		for _, n := range m.notes {
			if n.id > from {
				all = append(all, bytes.Clone(n.text))
			}
		}
		return nil
	})
	return all, last, err
}

func (m *memoryServer) announce(ctx context.Context, id string, text []byte, keep time.Duration) (gates map[string][]byte, now time.Time, err error) {
	if len(id) > maxGateID || len(text) > maxAnnouncement {
		return nil, now, fmt.Errorf("%w: an id of %d bytes, or an announcement of %d", errTooLong, len(id), len(text))
	}
	err = m.do(ctx, true, func(at time.Time) error {
		delete(m.wrong, "fleet:g")
		before := m.gates[id].text
		m.gates[id] = memoryGate{at, bytes.Clone(text)}
		if len(text) == 0 {
			delete(m.gates, id)
		}
		maps.DeleteFunc(m.gates, func(_ string, g memoryGate) bool { return at.Sub(g.at).Abs() > keep })
		gates, now = map[string][]byte{}, at.Truncate(time.Microsecond)
		for id, g := range m.gates {
			gates[id] = bytes.Clone(g.text)
		}
		gates[id] = before
		return nil
	})
	return gates, now, err
}

func (m *memoryServer) close() {}
