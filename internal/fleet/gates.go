package fleet

import (
	"context"
	"strconv"
	"time"

	"robotsgate/policy/snapshot"
)

const (
	// gateTime is how long a gate counts that does not check the store any more.
	gateTime = 15 * time.Second
	// refreshInterval is the time between two reads of the keys that were refreshed. A refresh reaches all gates within a second.
	refreshInterval = 250 * time.Millisecond
	// refreshTime is how long the store keeps these keys. A gate that has not read them for so long reads all sets again.
	refreshTime = time.Minute

	maxListed = 1000 // members of a list that are returned
)

// list adds a member to a list of the store. It returns the authentic texts of the list, each with the time at which it was
// added last. A member leaves the list after keep. added reports that the member was not in it.
func (f *Fleet) list(ctx context.Context, kind, member string, keep time.Duration) (texts map[string]string, added bool, err error) {
	name := f.key(kind, "")
	if member != "" {
		member = string(f.sealer.seal(name, []byte(member)))
	}
	got, err := f.server.call(ctx, 1, listScript, name, member, micros(keep), strconv.Itoa(maxListed))
	if err != nil {
		return nil, false, err
	}
	texts = map[string]string{}
	for i := 1; i+1 < len(got); i += 2 {
		text, err := f.sealer.open(name, got[i])
		if err != nil {
			f.reject(kind, err)
			continue
		}
		texts[string(text)] = got[i+1]
	}
	return texts, got[0] == "1", nil
}

// check finds out whether the store can be used, and how many gates there are. It shows the others that this gate runs.
func (f *Fleet) check(ctx context.Context) error {
	if err := f.server.connect(); err != nil {
		return err
	}
	timeout, wasUp := f.settings.Load().Timeout, f.link.up()
	begin := time.Now()
	var gates map[string]string
	var added bool
	try := func(ctx context.Context) (err error) {
		gates, added, err = f.list(ctx, "gates", f.gate, gateTime)
		return err
	}
	if !wasUp { // it may take longer for once, to connect
		if err := f.link.try(ctx, max(timeout, dialTimeout), try); err != nil {
			return err
		}
	}
	if err := f.link.try(ctx, timeout, try); err != nil {
		return err
	}
	if wasUp && added && begin.Sub(f.checked) < gateTime {
		// The store was emptied: the starts of paced requests are lost too. The clock goes by the gates seen before.
		f.clock.away()
		f.running.Go(func() { f.clock.back(f.ctx, f.recent) })
	}
	f.gates.Store(int64(max(1, len(gates))))
	f.checked = begin
	return nil
}

// tellRefresh tells all gates that the set of a key has to be read again.
func (f *Fleet) tellRefresh(ctx context.Context, key string) {
	_ = f.link.call(ctx, func(ctx context.Context) error {
		_, _, err := f.list(ctx, "refreshed", key, refreshTime)
		return err
	})
}

// followRefreshes makes the resolver read the sets again that other gates have refreshed, until the fleet is closed.
func (f *Fleet) followRefreshes(snapshots *snapshot.Resolver) {
	known, read := map[string]string{}, time.Now().Round(0) // by the wall clock, which goes on while the machine sleeps
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(refreshInterval):
		}
		now := time.Now().Round(0)
		var all map[string]string
		err := f.link.call(f.ctx, func(ctx context.Context) (err error) {
			all, _, err = f.list(ctx, "refreshed", "", refreshTime)
			return err
		})
		if err != nil {
			continue
		}
		if now.Sub(read) > refreshTime || len(all) == maxListed {
			snapshots.Reread()
		}
		for key, at := range all {
			if known[key] != at {
				snapshots.Learn(key)
			}
		}
		known, read = all, now
	}
}
