package origin

import (
	"sync"
	"time"
)

// maxRecent bounds the entries of a recent: clients choose the names.
const maxRecent = 4096

// A recent keeps values by name. When it is full it forgets all of them.
type recent[V any] struct {
	mu     sync.RWMutex
	values map[string]V
}

func (r *recent[V]) get(name string) (v V, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, ok = r.values[name]
	return v, ok
}

func (r *recent[V]) put(name string, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil || len(r.values) >= maxRecent {
		r.values = map[string]V{}
	}
	r.values[name] = v
}

// A verdict is what the guard found about the addresses of a name.
type verdict struct {
	err   error
	until time.Time
}

// verdictTime is how long a verdict holds. Without it every request through a parent proxy would wait for a lookup.
const verdictTime = time.Minute
