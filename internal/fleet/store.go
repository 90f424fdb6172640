package fleet

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"time"

	"robotsgate/policy/snapshot"
)

const (
	// shortest is how long a record without a good copy is kept, and a good copy at least.
	shortest = 24 * time.Hour
	longest  = 366 * 24 * time.Hour

	// maxBody bounds a body that is shared. It is the same for all gates, whatever their robots.max_bytes:
	// otherwise they would replace what they can't read of each other.
	maxBody = 4 << 20

	maxSaves = 16 // at once, of one call of Save
)

// The kinds of values under the name of a scope.
const (
	kindRecord = "record"
	kindBody   = "body"
)

// Load returns the record of a key, merged from this gate's own store and the shared one. ok is false if
// neither has one. While the shared store is away it returns the own record.
func (f *Fleet) Load(ctx context.Context, key string) (snapshot.Record, bool) {
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

// errNothing means that the store has no record, or none that can be used.
var errNothing = errors.New("nothing is stored")

// read returns the record of a key from the store, and the version of what is stored there.
func (f *Fleet) read(ctx context.Context, key string, withBody bool) (rec snapshot.Record, version int64, err error) {
	name := f.sealer.name(key)
	var s stored
	err = f.link.call(ctx, func(ctx context.Context, server server) (err error) {
		s, err = server.load(ctx, name, withBody)
		return err
	})
	if errors.Is(err, errWrongType) {
		f.reject(key, err)
		return snapshot.Record{}, 0, errNothing
	}
	if err != nil {
		return snapshot.Record{}, 0, err
	}
	if s.record == nil {
		return snapshot.Record{}, s.version, errNothing
	}
	if rec, err = f.unseal(name, s, withBody); err != nil {
		f.reject(key, err)
		return snapshot.Record{}, s.version, errNothing
	}
	return rec, s.version, nil
}

// unseal returns a stored record.
func (f *Fleet) unseal(name string, s stored, withBody bool) (snapshot.Record, error) {
	text, at, err := f.sealer.open(name, kindRecord, s.record)
	if err != nil {
		return snapshot.Record{}, err
	}
	rec, err := f.decode(text)
	if err == nil && at.Before(f.now().Add(-f.timeToLive(&rec)-maxAhead)) {
		return snapshot.Record{}, errors.New("the value is older than the store keeps values: it was put back, or robots.stale_for was longer")
	}
	if err != nil || rec.Good == nil || !withBody {
		return rec, err
	}
	if rec.Body, _, err = f.sealer.open(name, kindBody, s.body); err != nil {
		return snapshot.Record{}, err
	}
	if snapshot.Digest(string(rec.Body)) != rec.Good.SHA256 {
		return snapshot.Record{}, errors.New("the body is not the one of the record")
	}
	return rec, nil
}

// Save keeps records in this gate's own store, and shares them. An error is one of the own store; records
// that can't be shared now are shared later.
func (f *Fleet) Save(ctx context.Context, records map[string]snapshot.Record) (err error) {
	var all sync.WaitGroup
	all.Go(func() { err = f.local.Save(ctx, records) }) // evidence does not wait for the store
	copies, others := copiesFirst(maps.Keys(records))
	for _, keys := range [][]string{copies, others} {
		var sharing sync.WaitGroup
		places := make(chan struct{}, maxSaves)
		for _, key := range keys {
			places <- struct{}{}
			sharing.Go(func() {
				defer func() { <-places }()
				rec := records[key]
				if left := f.share(ctx, key, rec, nothing); left != nothing {
					f.shareLater(key, unshared{left, rec.Refreshed})
				}
			})
		}
		sharing.Wait()
	}
	all.Wait()
	return err
}

// copiesFirst returns the keys of copies that bind one crawler, and the others. The record that names a
// copy is shared after it, so that each gate that reads the record finds the copy.
func copiesFirst(keys iter.Seq[string]) (copies, others []string) {
	for key := range keys {
		if snapshot.ParseKey(key).Slot != "" {
			copies = append(copies, key)
		} else {
			others = append(others, key)
		}
	}
	return copies, others
}

// share merges a record into that of the store. What is older than the record there changes nothing. It
// returns what is left to be done, if the store is away; left is what was, if it is called again.
//
// Of a record that is too long only the refresh is shared.
func (f *Fleet) share(ctx context.Context, key string, rec snapshot.Record, left remainder) remainder {
	const tries = 20 // other gates may save at the same time
	if len(rec.Body) > maxBody {
		rec = f.tooLong(key, rec)
	}
	if rec.Empty() && rec.Refreshed.IsZero() {
		return nothing // a copy that no record names any more ends by itself: another gate may have a newer one
	}
	name := f.sealer.name(key)
	for range tries {
		theirs, version, err := f.read(ctx, key, false)
		if err != nil && err != errNothing {
			return max(left, theRecord)
		}
		merged, _ := snapshot.Merge(theirs, rec)
		text := f.encode(merged)
		switch {
		case text != nil:
		case rec.Empty():
			return nothing
		default:
			rec = f.tooLong(key, rec)
			continue
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
		err = f.link.call(ctx, func(ctx context.Context, server server) (err error) {
			saved, err = server.save(ctx, name, version, v, f.timeToLive(&merged))
			return err
		})
		switch {
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

// tooLong returns what is shared of a record that is too long.
func (f *Fleet) tooLong(key string, rec snapshot.Record) snapshot.Record {
	f.log.Debug("a robots.txt is too long to share; each gate fetches it", "origin", snapshot.ParseKey(key).Origin)
	return snapshot.Record{Refreshed: rec.Refreshed}
}

// timeToLive returns how long the store keeps a record.
func (f *Fleet) timeToLive(rec *snapshot.Record) time.Duration {
	if rec.Good == nil && len(rec.Copies) == 0 {
		return shortest
	}
	return min(f.settings.Load().StaleFor+shortest, longest)
}

// Origins returns the origins in this gate's own store.
func (f *Fleet) Origins(ctx context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	return f.local.Origins(ctx, contains, from, limit)
}
