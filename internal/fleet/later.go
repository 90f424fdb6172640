package fleet

import (
	"time"
)

// maxUnshared bounds the sets that are shared when the store is back.
const maxUnshared = 20_000

// An unshared set has to be shared later.
type unshared struct {
	left      remainder
	refreshed time.Time // as in the set, which the own store does not keep if there is no answer in it
}

// A remainder is what is left to be done to share a set.
type remainder int

const (
	nothing   remainder = iota
	theSet              // it could not be saved
	theNotice           // it could, but the other gates have not been told
)

// shareLater notes that a set has to be shared when the store is back.
func (f *Fleet) shareLater(key string, u unshared) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, ok := f.unshared[key]; ok || len(f.unshared) < maxUnshared {
		if before.refreshed.After(u.refreshed) {
			u.refreshed = before.refreshed
		}
		f.unshared[key] = unshared{max(u.left, before.left), u.refreshed}
	}
	if f.link.up() { // it is back already, or only busy
		f.wakeUp()
	}
}

// wakeUp makes catchUp look.
func (f *Fleet) wakeUp() {
	select {
	case f.back <- struct{}{}:
	default: // a signal is waiting already
	}
}

// catchUp shares what was saved while the store was away, whenever it is back.
func (f *Fleet) catchUp() {
	for {
		select {
		case <-f.back:
		case <-f.ctx.Done():
			return
		}
		f.mu.Lock()
		all := f.unshared
		f.unshared = map[string]unshared{}
		f.mu.Unlock()
		failed := false
		for key, u := range all {
			if !failed {
				set, _ := f.local.Load(f.ctx, key)
				if set.Empty() {
					set.Refreshed = u.refreshed
				}
				u.left = f.share(f.ctx, key, set, u.left)
			}
			if u.left != nothing {
				f.shareLater(key, u)
				failed = true
			}
		}
		if failed {
			select {
			case <-time.After(time.Second): // it may only be busy
			case <-f.ctx.Done():
			}
		}
	}
}
