package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"robotsgate/policy/pace"
)

// scratchTime is how long the store keeps what a trial writes.
const scratchTime = 10 * time.Second

// A trial runs one script, to find out whether the store's user may.
type trial struct {
	script string
	run    func(context.Context) error
}

// trials returns the trials of every script, with keys that no gate has. Each needs the ones before it.
func trials(server *redisServer, sealer *sealer) []trial {
	id := strings.ToLower(rand.Text())
	name := sealer.name("doctor " + id)
	s := *server
	s.fleet, s.noticesTTL = name+":", scratchTime
	var fence int64
	return []trial{
		{"save", func(ctx context.Context) error {
			saved, err := s.save(ctx, name, 0, value{sealed: sealer.seal(name, kindSet, []byte(id))}, scratchTime)
			return cmp.Or(err, missing(saved))
		}},
		{"load", func(ctx context.Context) error {
			got, err := s.load(ctx, name, false)
			if err != nil {
				return err
			}
			if got.sealed == nil {
				return errMissing
			}
			text, _, err := sealer.open(name, kindSet, got.sealed)
			return cmp.Or(err, missing(string(text) == id))
		}},
		{"acquire", func(ctx context.Context) (err error) {
			fence, err = s.acquire(ctx, name, id, scratchTime)
			return cmp.Or(err, missing(fence > 0))
		}},
		{"renew", func(ctx context.Context) error {
			held, err := s.renew(ctx, name, fence, scratchTime)
			return cmp.Or(err, missing(held))
		}},
		{"release", func(ctx context.Context) error { return s.release(ctx, name, fence) }},
		{"reserve", func(ctx context.Context) error {
			_, err := s.reserve(ctx, name, pace.Reservation{Interval: time.Second, Since: -1, Longest: time.Second, Memory: scratchTime})
			return err
		}},
		{"notify", func(ctx context.Context) error { return s.notify(ctx, []byte(id)) }},
		{"notices", func(ctx context.Context) error {
			all, _, err := s.notices(ctx, "0-1") // a position before the first, to read it
			return cmp.Or(err, missing(len(all) == 1))
		}},
		{"announce", func(ctx context.Context) error {
			_, _, err := s.announce(ctx, id, []byte(id), scratchTime)
			return err
		}},
	}
}

var errMissing = errors.New("what was written is not there: the address may be that of several servers that share nothing")

func missing(found bool) error {
	if found {
		return nil
	}
	return errMissing
}

// allRun returns why a script does not run, nil if all do. A store may have removed what a trial has written: that is no
// failure here. Limit is for one script.
func allRun(ctx context.Context, server *redisServer, sealer *sealer, limit time.Duration) error {
	for _, t := range trials(server, sealer) {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := t.run(limited)
		cancel()
		if err != nil && !errors.Is(err, errMissing) {
			return err
		}
	}
	return nil
}
