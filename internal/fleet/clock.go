package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"robotsgate/policy/pace"
)

// caution is how long the starts in the store count as incomplete after the store was away: it may have
// been emptied, and other gates may not have stored their starts yet. It is longer than gates take to
// connect and to announce themselves, so that their number is known at the end.
const caution = 8 * time.Second

// tellers is how many calls at once tell the store of starts.
const tellers = 16

// A paceClock is a [pace.Clock] on the store: it has the last starts of all gates at each origin, and the pauses.
type paceClock struct {
	reserve func(context.Context, pace.Reservation) (pace.Grant, error)
	pause   func(origin, token string, change pace.PauseChange) error
	gates   func() int // seen last

	mu       sync.Mutex
	up       bool
	lost     int       // the number of gates when the store was lost, which may have been emptied; 0: it never was
	cautious time.Time // until then the store may not know all starts
}

func (c *paceClock) Reserve(r pace.Reservation) (pace.Grant, error) {
	up, factor := c.state()
	if !up {
		return pace.Grant{}, errAway
	}
	usual := r.Interval
	cautious := factor > 1 && r.Step == 0 // a limit needs no caution: it begins anew
	if cautious {
		r.Interval = pace.Times(r.Interval, factor)
	}
	g, err := c.reserve(context.Background(), r)
	if cautious && g.Start == 0 {
		// The interval is the usual one again after the caution. Without this bound a fleet of many gates
		// gives distances that the Pacer takes for those of a clock that has jumped.
		g.Wait = min(g.Wait, max(r.Longest+time.Microsecond, usual+caution))
	}
	return g, err
}

func (c *paceClock) Alone() int {
	_, factor := c.state()
	return max(factor, c.gates())
}

// state reports whether the store can be used, and what multiplies intervals until it knows all starts.
func (c *paceClock) state() (up bool, factor int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up && time.Now().After(c.cautious) {
		return true, 1
	}
	return c.up, max(c.lost, 1)
}

// Pause changes the pause of a product token at an origin, as [pace.Clock] says.
func (c *paceClock) Pause(origin, token string, change pace.PauseChange) error {
	return c.pause(origin, token, change)
}

// away is called when the store is lost, before it can be there again.
func (c *paceClock) away() {
	gates := c.gates()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == 0 || c.up && time.Now().After(c.cautious) { // else the gates seen last may be fewer than there are
		c.lost = gates
	}
	c.up = false
}

// back is called when the store can be used. It stores this gate's recent starts. Until caution after it was lost,
// reservations have a multiple of the interval, as those of a gate alone.
func (c *paceClock) back(ctx context.Context, recent func() []pace.Reservation) {
	c.mu.Lock()
	if c.up = true; c.lost > 0 {
		c.cautious = time.Now().Add(caution)
	}
	c.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(tellers)
	for _, r := range recent() {
		g.Go(func() error {
			_, err := c.reserve(ctx, r)
			return err
		})
	}
	_ = g.Wait() // of a start that was not noted the next reservation at that origin tells
}

// reserve reserves the next start with a key, as [pace.Starts.Reserve] does, by the store's clock.
func (f *Fleet) reserve(ctx context.Context, r pace.Reservation) (g pace.Grant, err error) {
	since, longest := "-1", "-1"
	if r.Since >= 0 {
		since = strconv.FormatInt(r.Since.Microseconds(), 10)
	}
	if r.Longest >= 0 {
		longest = strconv.FormatInt(r.Longest.Microseconds(), 10)
	}
	err = f.link.call(ctx, func(ctx context.Context) error {
		got, err := f.server.call(ctx, 3, reserveScript, f.key("pace", r.Key), micros(r.Interval), strconv.Itoa(r.Starts), micros(r.Step),
			since, longest, micros(r.Memory), strconv.FormatInt(max(0, r.Returned.Microseconds()), 10), strconv.Itoa(r.Missed))
		if err != nil {
			return err
		}
		wait, err1 := number(got[0])
		start, err2 := number(got[1])
		left, err3 := number(got[2])
		g = pace.Grant{Wait: time.Duration(wait) * time.Microsecond, Start: time.Duration(start) * time.Microsecond, Left: int(left)}
		if err := errors.Join(err1, err2, err3); err != nil || start != 0 && g.Wait > r.Longest {
			return errAnswer
		}
		return nil
	})
	return g, err
}

// longestPause bounds how long a pause is stored.
const longestPause = 31 * 24 * time.Hour

// pause changes the pause of a product token at an origin. Its times are those of the store's clock.
func (f *Fleet) pause(origin, token string, change pace.PauseChange) error {
	const tries = 20 // other gates may change it at the same time
	ctx, name := context.Background(), f.key("pause", origin+" "+token)
	for range tries {
		text, version, now, err := f.loadValue(ctx, name)
		if err != nil {
			return err
		}
		var p pace.Pause
		if text != nil && json.Unmarshal(text, &p) != nil {
			p = pace.Pause{}
		}
		keep := change(&p, now)
		if keep == 0 {
			return nil
		}
		if text, err = json.Marshal(p); err != nil {
			return err
		}
		if saved, err := f.saveValue(ctx, name, version, text, min(keep, longestPause)); err != nil || saved {
			return err
		}
	}
	return errors.New("other gates change the pause all the time")
}
