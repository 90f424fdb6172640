package fleet

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"robotsgate/policy"
)

const (
	// leaseTime is how long a permission to fetch outlives the gate that has it.
	leaseTime = 3 * time.Second
	// longestLease bounds a permission: that of a fetch and the save that follows.
	longestLease = time.Minute

	firstPoll = 20 * time.Millisecond // while another gate fetches
	lastPoll  = 200 * time.Millisecond

	// shortest is how long a record without a good copy is kept, and a good copy at least.
	shortest = 24 * time.Hour
	longest  = 366 * 24 * time.Hour

	maxSaves    = 16     // at once, of one call of Save
	maxUnshared = 20_000 // records that are shared when the server is back
)

// The kinds of values under the name of a scope.
const (
	kindRecord = "record"
	kindBody   = "body"
)

// Load returns what this gate and the others know together.
func (f *Fleet) Load(ctx context.Context, key string) (policy.Record, bool) {
	known, ok := f.local.Load(ctx, key)
	// A gate that knows the origin rarely needs the body.
	theirs, _, err := f.read(ctx, key, !ok)
	if err != nil {
		return known, ok
	}
	merged, learned := policy.Merge(known, theirs)
	if !learned {
		return known, ok
	}
	switch {
	case merged.Good == nil:
	case merged.Good == known.Good:
		merged.Body = known.Body
	case theirs.Body == nil:
		if theirs, _, err = f.read(ctx, key, true); err != nil || theirs.Good == nil || theirs.Good.SHA256 != merged.Good.SHA256 {
			return known, ok
		}
		fallthrough
	default:
		merged.Body = theirs.Body
	}
	merged.Foreign = true
	return merged, !merged.Empty()
}

// errNothing says that the server has no record, or none that can be used.
var errNothing = errors.New("nothing is stored")

// read returns the record of a key from the server, and the version of what is stored there.
func (f *Fleet) read(ctx context.Context, key string, withBody bool) (rec policy.Record, version int64, err error) {
	name := f.sealer.name(key)
	var s stored
	err = f.link.call(ctx, "load", func(ctx context.Context, server server) (err error) {
		s, err = server.load(ctx, name, withBody)
		return err
	})
	if errors.Is(err, errWrongType) {
		f.reject(key, err)
		return policy.Record{}, 0, errNothing
	}
	if err != nil {
		return policy.Record{}, 0, err
	}
	if s.record == nil {
		return policy.Record{}, s.version, errNothing
	}
	if rec, err = f.unseal(name, s, withBody); err != nil {
		f.reject(key, err)
		return policy.Record{}, s.version, errNothing
	}
	return rec, s.version, nil
}

// unseal returns a stored record.
func (f *Fleet) unseal(name string, s stored, withBody bool) (policy.Record, error) {
	text, at, err := f.sealer.open(name, kindRecord, s.record)
	if err != nil {
		return policy.Record{}, err
	}
	rec, err := f.decode(text)
	if err == nil && at.Before(f.now().Add(-f.timeToLive(&rec)-maxAhead)) {
		return policy.Record{}, errors.New("the value is older than the server keeps values: it was put back")
	}
	if err != nil || rec.Good == nil || !withBody {
		return rec, err
	}
	if rec.Body, _, err = f.sealer.open(name, kindBody, s.body); err != nil {
		return policy.Record{}, err
	}
	if policy.Digest(string(rec.Body)) != rec.Good.SHA256 {
		return policy.Record{}, errors.New("the body is not the one of the record")
	}
	return rec, nil
}

// Save keeps records in this gate's own store, and shares them. Its errors are those of the own store.
func (f *Fleet) Save(ctx context.Context, records map[string]policy.Record) (err error) {
	var all sync.WaitGroup
	all.Go(func() { err = f.local.Save(ctx, records) }) // evidence does not wait for the server
	places := make(chan struct{}, maxSaves)
	for key, rec := range records {
		// A copy that no record names any more ends by itself: another gate may have a newer one.
		if rec.Empty() {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if left := f.share(ctx, key, rec, nothing); left != nothing {
				f.shareLater(key, left)
			}
		})
	}
	all.Wait()
	return err
}

// An unshared record has to be shared later: it is what is left to be done.
type unshared int

const (
	nothing   unshared = iota
	theRecord          // it could not be saved
	theNotice          // it could, but the other gates have not been told
)

// shareLater notes that a record has to be shared when the server is back.
func (f *Fleet) shareLater(key string, left unshared) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unshared) < maxUnshared {
		f.unshared[key] = max(left, f.unshared[key])
	}
	if f.link.up() { // it is back already, or only busy
		f.wakeUp()
	}
}

// wakeUp makes catchUp look.
func (f *Fleet) wakeUp() {
	select {
	case f.back <- struct{}{}:
	default: // it will
	}
}

// catchUp shares what was saved while the server was away, whenever it is back.
func (f *Fleet) catchUp() {
	for {
		select {
		case <-f.back:
		case <-f.ctx.Done():
			return
		}
		f.mu.Lock()
		keys := f.unshared
		f.unshared = map[string]unshared{}
		f.mu.Unlock()
		failed := false
		for key, left := range keys {
			if !failed {
				if rec, ok := f.local.Load(f.ctx, key); ok {
					left = f.share(f.ctx, key, rec, left)
				} else {
					left = nothing
				}
			}
			if left != nothing {
				f.shareLater(key, left)
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

// share merges a record into that of the server. What is older than the record there changes nothing. It
// returns what is left to be done, if the server is away; left is what was, if it is called again.
func (f *Fleet) share(ctx context.Context, key string, rec policy.Record, left unshared) unshared {
	const tries = 20 // other gates may save at the same time
	name := f.sealer.name(key)
	for range tries {
		theirs, version, err := f.read(ctx, key, false)
		if err != nil && err != errNothing {
			return max(left, theRecord)
		}
		merged, _ := policy.Merge(theirs, rec)
		text := f.encode(merged)
		if text == nil {
			f.log.Debug("a record of robots.txt is too long to share; each gate fetches it", "origin", policy.ParseKey(key).Origin)
			return nothing
		}
		if bytes.Equal(text, f.encode(theirs)) {
			if left == theNotice {
				return f.notify(ctx, key)
			}
			return nothing
		}
		v := value{record: f.sealer.seal(name, kindRecord, text)}
		if rec.Good != nil && merged.Good == rec.Good {
			v.body = f.sealer.seal(name, kindBody, rec.Body)
		}
		var saved bool
		err = f.link.call(ctx, "save", func(ctx context.Context, server server) (err error) {
			saved, err = server.save(ctx, name, version, v, f.timeToLive(&merged))
			return err
		})
		switch {
		case errors.Is(err, errTooLong):
			return nothing
		case err != nil:
			return max(left, theRecord)
		case !saved:
			continue
		case left == theNotice || merged.Refreshed.After(theirs.Refreshed):
			return f.notify(ctx, key)
		}
		return nothing
	}
	return nothing // what other gates have saved meanwhile is as new
}

// timeToLive returns how long the server keeps a record.
func (f *Fleet) timeToLive(rec *policy.Record) time.Duration {
	if rec.Good == nil && len(rec.Copies) == 0 {
		return shortest
	}
	return min(f.robots.StaleFor+shortest, longest)
}

// Acquire asks for permission to fetch. While another gate has it, it waits. While the server is away
// this gate fetches alone.
func (f *Fleet) Acquire(ctx context.Context, key string) (release func(), changed bool) {
	name := f.sealer.name(key)
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		var fence int64
		err := f.link.call(ctx, "acquire", func(ctx context.Context, server server) (err error) {
			fence, err = server.acquire(ctx, name, f.gate, leaseTime)
			return err
		})
		if err != nil {
			return nil, changed
		}
		if fence > 0 {
			return f.hold(name, fence), true
		}
		changed = true
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, true
		}
	}
}

// hold renews a lease until it is released.
func (f *Fleet) hold(name string, fence int64) (release func()) {
	ctx, end := context.WithTimeout(f.ctx, longestLease)
	f.running.Go(func() {
		defer end()
		held := true
		for held {
			select {
			case <-time.After(leaseTime / 3):
			case <-ctx.Done():
				held = false
				continue
			}
			err := f.link.call(ctx, "renew", func(ctx context.Context, server server) (err error) {
				held, err = server.renew(ctx, name, fence, leaseTime)
				return err
			})
			held = held || err != nil // the server may be back in time
		}
		// Also when the gate ends: the others need not wait until the lease ends by itself.
		_ = f.link.call(context.Background(), "release", func(ctx context.Context, server server) error {
			return server.release(ctx, name, fence)
		})
	})
	return end
}

// Origins returns the origins in this gate's own store.
func (f *Fleet) Origins(ctx context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	return f.local.Origins(ctx, contains, from, limit)
}
