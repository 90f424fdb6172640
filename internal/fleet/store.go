package fleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
	maxBody  = 4 << 20
	maxValue = maxBody + 64<<10

	maxAhead = time.Minute // how far the clock of another gate may be ahead

	leaseTime    = 3 * time.Second       // how long a permission to fetch outlives the gate that has it
	longestLease = time.Minute           // bounds a permission: that of a fetch and the save that follows
	firstPoll    = 20 * time.Millisecond // while another gate fetches
	lastPoll     = 200 * time.Millisecond
)

// Load returns the set of a key, merged from this gate's disk and Valkey. ok is false if neither has one. While Valkey
// is away it returns that of the disk.
func (f *Fleet) Load(ctx context.Context, key string) (snapshot.Set, bool) {
	known, ok := f.local.Load(ctx, key)
	theirs, _, err := f.read(ctx, key)
	if err != nil {
		return known, ok
	}
	merged, learned := merge(known, theirs)
	if !learned {
		return known, ok
	}
	merged.Foreign = true
	return merged, !merged.Empty()
}

// merge is [snapshot.Merge] with the body.
func merge(a, b snapshot.Set) (merged snapshot.Set, learned bool) {
	merged, learned = snapshot.Merge(a, b)
	switch merged.Good {
	case nil:
	case a.Good:
		merged.Body = a.Body
	default:
		merged.Body = b.Body
	}
	return merged, learned
}

// read returns the set of a key from the store, which is empty if there is none that can be used, and the version of
// what is stored there.
func (f *Fleet) read(ctx context.Context, key string) (set snapshot.Set, version string, err error) {
	text, version, _, err := f.loadValue(ctx, f.key("set", key))
	if err != nil || text == nil {
		return snapshot.Set{}, version, err
	}
	if set, err = f.decode(text); err != nil {
		f.reject(key, err)
		return snapshot.Set{}, version, nil
	}
	return set, version, nil
}

// loadValue returns the text of what is stored under a name, nil if there is nothing that a gate has sealed; its version; and
// the store's time.
func (f *Fleet) loadValue(ctx context.Context, name string) (text []byte, version string, now time.Duration, err error) {
	var got []string
	err = f.link.call(ctx, func(ctx context.Context) (err error) {
		got, err = f.server.call(ctx, 3, loadScript, name, strconv.Itoa(maxValue))
		return err
	})
	if err != nil {
		return nil, "", 0, err
	}
	at, err := number(got[0])
	now = time.Duration(at) * time.Microsecond
	switch {
	case err != nil:
		return nil, "", 0, err
	case got[1] != "":
		f.reject(name, errors.New(got[1]))
		return nil, "", now, nil
	case got[2] == "":
		return nil, "", now, nil
	}
	version = got[2][:min(len(got[2]), sha256.Size)]
	if text, err = f.sealer.open(name, got[2]); err != nil {
		f.reject(name, err)
	}
	return text, version, now, nil
}

// saveValue seals a text and stores it, if version is still that of what is stored. It reports whether it has.
func (f *Fleet) saveValue(ctx context.Context, name, version string, text []byte, ttl time.Duration) (saved bool, err error) {
	err = f.link.call(ctx, func(ctx context.Context) error {
		got, err := f.server.call(ctx, 1, saveScript, name, version, string(f.sealer.seal(name, text)), millis(ttl), strconv.Itoa(maxValue))
		saved = err == nil && got[0] == "1"
		return err
	})
	return saved, err
}

// Save keeps a set on this gate's disk, and shares it. An error is one of the disk.
func (f *Fleet) Save(ctx context.Context, key string, set snapshot.Set) (err error) {
	var disk sync.WaitGroup
	disk.Go(func() { err = f.local.Save(ctx, key, set) }) // evidence does not wait for the store
	f.share(ctx, key, set)
	disk.Wait()
	return err
}

// share merges a set into that of the store. What is older than the set there changes nothing. Of a set that is too long
// only the refresh is shared.
func (f *Fleet) share(ctx context.Context, key string, set snapshot.Set) {
	const tries = 20 // other gates may save at the same time
	if len(set.Body) > maxBody {
		f.log.Debug("a robots.txt is too long to share; each gate fetches it", "origin", snapshot.ParseKey(key).Origin)
		set = snapshot.Set{Refreshed: set.Refreshed}
	}
	for range tries {
		theirs, version, err := f.read(ctx, key)
		if err != nil {
			return
		}
		merged, learned := merge(theirs, set)
		if !learned {
			return
		}
		text, err := f.encode(merged)
		if err != nil {
			f.log.Debug("an answer can't be shared", "origin", snapshot.ParseKey(key).Origin, "error", err)
			return
		}
		saved, err := f.saveValue(ctx, f.key("set", key), version, text, f.timeToLive(&merged))
		if err == nil && !saved {
			continue
		}
		if err == nil && merged.Refreshed.After(theirs.Refreshed) {
			f.tellRefresh(ctx, key)
		}
		return
	}
}

// timeToLive returns how long the store keeps a set.
func (f *Fleet) timeToLive(set *snapshot.Set) time.Duration {
	if set.Good == nil {
		return shortest
	}
	return min(f.settings.Load().StaleFor+shortest, longest)
}

// encode returns a set as a line of JSON, and its body. Answers of this gate get its id.
func (f *Fleet) encode(set snapshot.Set) ([]byte, error) {
	body := set.Body
	set.Body = nil
	if set.Last == set.Good {
		set.Last = nil
	}
	for _, s := range []**snapshot.Snapshot{&set.Good, &set.Last} {
		if *s != nil && (*s).By == "" {
			own := **s
			own.By = f.gate
			*s = &own
		}
	}
	text, err := json.Marshal(set)
	if len(text) > maxValue-maxBody-sha256.Size-1 {
		return nil, errors.New("it is too long")
	}
	return append(append(text, '\n'), body...), err
}

// decode returns an encoded set. It is an error if it has a time in the future or a value that no gate writes. Bounds
// such as robots.max_age are applied when it is used.
func (f *Fleet) decode(text []byte) (set snapshot.Set, err error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(line, &set); err != nil {
		return snapshot.Set{}, err
	}
	if set.Body = body; set.Last == nil {
		set.Last = set.Good
	}
	if set.Good != nil && snapshot.Digest(string(body)) != set.Good.SHA256 {
		return snapshot.Set{}, errors.New("the body is not the one of the record")
	}
	times := []time.Time{set.Refreshed}
	for _, s := range []*snapshot.Snapshot{set.Good, set.Last} {
		if s == nil {
			continue
		}
		if s.Status < 0 || s.Status > 999 || s.Failures < 0 || s.Retry < 0 {
			return snapshot.Set{}, errors.New("a number of an answer is out of bounds")
		}
		if times = append(times, s.Fetched, s.Since); s.By == f.gate {
			s.By = ""
		}
	}
	for _, at := range times {
		if at.After(time.Now().Add(maxAhead)) {
			return snapshot.Set{}, fmt.Errorf("a time is in the future: %s; check the clocks of the gates", at.UTC().Format(time.RFC3339))
		}
	}
	return set, nil
}

// Acquire asks for permission to fetch. While another gate has it, it waits. While the store is away
// this gate fetches alone.
func (f *Fleet) Acquire(ctx context.Context, key string) (release func(), changed bool) {
	name, mine := f.key("lease", key), rand.Text()
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		got, err := f.lease(ctx, name, mine)
		switch {
		case err != nil:
			return nil, changed
		case got:
			return f.hold(name, mine), true
		}
		changed = true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, true
		}
	}
}

// lease takes a lease for leaseTime, or renews it. It reports false if another gate has it.
func (f *Fleet) lease(ctx context.Context, name, mine string) (got bool, err error) {
	err = f.link.call(ctx, func(ctx context.Context) error {
		answer, err := f.server.call(ctx, 1, acquireScript, name, mine, millis(leaseTime))
		got = err == nil && answer[0] == "1"
		return err
	})
	return got, err
}

// hold renews a lease until it is released.
func (f *Fleet) hold(name, mine string) (release func()) {
	ctx, end := context.WithTimeout(f.ctx, longestLease)
	f.running.Go(func() {
		defer end()
		for held := true; held; {
			select {
			case <-ctx.Done():
				held = false
			case <-time.After(leaseTime / 3):
				got, err := f.lease(ctx, name, mine)
				held = got || err != nil // the store may be back in time
			}
		}
		_ = f.link.call(context.Background(), func(ctx context.Context) error {
			_, err := f.server.call(ctx, 1, releaseScript, name, mine)
			return err
		})
	})
	return end
}
