package fleet

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"robotsgate/policy/snapshot"
)

const (
	// shortest is how long a set without a good copy is kept, and a good copy at least.
	shortest = 24 * time.Hour
	longest  = 366 * 24 * time.Hour

	// maxBody bounds a body that is shared. It is the same for all gates, whatever their robots.max_bytes:
	// otherwise they would replace what they can't read of each other.
	maxBody = 4 << 20

	maxSaves = 16 // at once, of one call of Save
)

// The kinds of values under the name of a scope.
const (
	kindSet  = "record"
	kindBody = "body"
)

// Load returns the set of a key, merged from this gate's own store and the shared one. ok is false if
// neither has one. While the shared store is away it returns the own set.
func (f *Fleet) Load(ctx context.Context, key string) (snapshot.Set, bool) {
	known, ok := f.local.Load(ctx, key)
	// A gate that knows the origin rarely needs the body.
	theirs, _, err := f.read(ctx, key, !ok)
	if err != nil {
		return known, ok
	}
	merged, learned := snapshot.Merge(known, theirs)
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

// errNothing means that the store has no set, or none that can be used.
var errNothing = errors.New("nothing is stored")

// read returns the set of a key from the store, and the version of what is stored there.
func (f *Fleet) read(ctx context.Context, key string, withBody bool) (set snapshot.Set, version int64, err error) {
	name := f.sealer.name(key)
	var s stored
	err = f.link.call(ctx, func(ctx context.Context, server server) (err error) {
		s, err = server.load(ctx, name, withBody)
		return err
	})
	if errors.Is(err, errWrongType) {
		f.reject(key, err)
		return snapshot.Set{}, 0, errNothing
	}
	if err != nil {
		return snapshot.Set{}, 0, err
	}
	if s.sealed == nil {
		return snapshot.Set{}, s.version, errNothing
	}
	if set, err = f.unseal(name, s, withBody); err != nil {
		f.reject(key, err)
		return snapshot.Set{}, s.version, errNothing
	}
	return set, s.version, nil
}

// unseal returns a stored set.
func (f *Fleet) unseal(name string, s stored, withBody bool) (snapshot.Set, error) {
	text, at, err := f.sealer.open(name, kindSet, s.sealed)
	if err != nil {
		return snapshot.Set{}, err
	}
	set, err := f.decode(text)
	if err == nil && at.Before(f.now().Add(-f.timeToLive(&set)-maxAhead)) {
		return snapshot.Set{}, errors.New("the value is older than the store keeps values: it was put back, or robots.stale_for was longer")
	}
	if err != nil || set.Good == nil || !withBody {
		return set, err
	}
	if set.Body, _, err = f.sealer.open(name, kindBody, s.body); err != nil {
		return snapshot.Set{}, err
	}
	if snapshot.Digest(string(set.Body)) != set.Good.SHA256 {
		return snapshot.Set{}, errors.New("the body is not the one of the record")
	}
	return set, nil
}

// Save keeps sets in this gate's own store, and shares them. An error is one of the own store; sets
// that can't be shared now are shared later.
func (f *Fleet) Save(ctx context.Context, sets map[string]snapshot.Set) (err error) {
	var all sync.WaitGroup
	all.Go(func() { err = f.local.Save(ctx, sets) }) // evidence does not wait for the store
	var sharing sync.WaitGroup
	places := make(chan struct{}, maxSaves)
	for key, set := range sets {
		places <- struct{}{}
		sharing.Go(func() {
			defer func() { <-places }()
			if left := f.share(ctx, key, set, nothing); left != nothing {
				f.shareLater(key, unshared{left, set.Refreshed})
			}
		})
	}
	sharing.Wait()
	all.Wait()
	return err
}

// share merges a set into that of the store. What is older than the set there changes nothing. It
// returns what is left to be done, if the store is away; left is what was, if it is called again.
//
// Of a set that is too long only the refresh is shared.
func (f *Fleet) share(ctx context.Context, key string, set snapshot.Set, left remainder) remainder {
	const tries = 20 // other gates may save at the same time
	if len(set.Body) > maxBody {
		set = f.tooLong(key, set)
	}
	if set.Empty() && set.Refreshed.IsZero() {
		return nothing // there is nothing to share, and another gate may have an answer
	}
	name := f.sealer.name(key)
	for range tries {
		theirs, version, err := f.read(ctx, key, false)
		if err != nil && err != errNothing {
			return max(left, theSet)
		}
		merged, _ := snapshot.Merge(theirs, set)
		text := f.encode(merged)
		switch {
		case text != nil:
		case set.Empty():
			return nothing
		default:
			set = f.tooLong(key, set)
			continue
		}
		if bytes.Equal(text, f.encode(theirs)) {
			if left == theNotice {
				return f.notify(ctx, key)
			}
			return nothing
		}
		v := value{sealed: f.sealer.seal(name, kindSet, text)}
		if set.Good != nil && merged.Good == set.Good {
			v.body = f.sealer.seal(name, kindBody, set.Body)
		}
		var saved bool
		err = f.link.call(ctx, func(ctx context.Context, server server) (err error) {
			saved, err = server.save(ctx, name, version, v, f.timeToLive(&merged))
			return err
		})
		switch {
		case err != nil:
			return max(left, theSet)
		case !saved:
			continue
		case left == theNotice || merged.Refreshed.After(theirs.Refreshed):
			return f.notify(ctx, key)
		}
		return nothing
	}
	return nothing // what other gates have saved meanwhile is as new
}

// tooLong returns what is shared of a set that is too long.
func (f *Fleet) tooLong(key string, set snapshot.Set) snapshot.Set {
	f.log.Debug("a robots.txt is too long to share; each gate fetches it", "origin", snapshot.ParseKey(key).Origin)
	return snapshot.Set{Refreshed: set.Refreshed}
}

// timeToLive returns how long the store keeps a set.
func (f *Fleet) timeToLive(set *snapshot.Set) time.Duration {
	if set.Good == nil {
		return shortest
	}
	return min(f.settings.Load().StaleFor+shortest, longest)
}

// Origins returns the origins in this gate's own store.
func (f *Fleet) Origins(ctx context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	return f.local.Origins(ctx, contains, from, limit)
}
