package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"robotsgate/policy/pace"
)

const (
	kindPauses = "pauses"

	// maxPauses bounds the product tokens with pauses that gates share at one origin, so that keys and values
	// for an origin take at most 4 KiB. Further pauses are of each gate.
	maxPauses = 12
	// longestPause bounds how long a pause is stored.
	longestPause = 31 * 24 * time.Hour
)

// A storedPause is a pause as the store has it. Its times are microseconds of the store's clock.
type storedPause struct {
	Token              [8]byte // of the hash of a product token
	Since, Until, Ends int64
	Row                uint8
	First              bool
}

// Pause changes the pause of a product token at an origin, as [pace.Clock] says.
func (c *paceClock) Pause(origin, token string, change func(p *pace.Pause, now time.Duration) bool) error {
	const tries = 20 // other gates may change pauses of the origin at the same time
	name := c.sealer.name("pauses " + origin)
	sum := sha256.Sum256([]byte(token))
	key := [8]byte(sum[:])
	for range tries {
		s, all, err := c.loadPauses(origin, name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(p storedPause) bool { return p.Token == key })
		var p pace.Pause
		if i >= 0 {
			p = all[i].pause()
		}
		if !change(&p, s.now) {
			return nil
		}
		if i < 0 {
			i, all = len(all), append(all, storedPause{})
		}
		all[i] = storePause(key, p)
		if len(all) > maxPauses {
			return nil // this gate's own pause counts
		}
		if saved, err := c.savePauses(name, s, all); err != nil || saved {
			return err
		}
	}
	return errors.New("other gates change the pauses of the origin all the time")
}

// loadPauses returns the pauses that are stored for an origin, and the value that has them.
func (c *paceClock) loadPauses(origin, name string) (s stored, all []storedPause, err error) {
	err = c.call(context.Background(), func(ctx context.Context, server server) (err error) {
		if s, err = server.load(ctx, name, false); !errors.Is(err, errWrongType) {
			return err
		}
		// Only a write replaces the value.
		c.reject("pauses of "+origin, err)
		if _, err = server.save(ctx, name, 0, value{sealed: c.sealer.seal(name, kindPauses, nil)}, time.Minute); err == nil {
			s, err = server.load(ctx, name, false)
		}
		return err
	})
	if err != nil || s.sealed == nil {
		return s, nil, err
	}
	if all, err = c.unsealPauses(name, s.sealed); err != nil {
		c.reject("pauses of "+origin, err)
	}
	return s, slices.DeleteFunc(all, func(p storedPause) bool { return micro(p.Ends) <= s.now }), nil
}

// savePauses stores the pauses of an origin, if they are still those of s. It reports whether it has.
func (c *paceClock) savePauses(name string, s stored, all []storedPause) (saved bool, err error) {
	text, err := binary.Append(nil, binary.BigEndian, all)
	if err != nil {
		return false, err
	}
	var ends time.Duration
	for _, p := range all {
		ends = max(ends, micro(p.Ends))
	}
	err = c.call(context.Background(), func(ctx context.Context, server server) (err error) {
		saved, err = server.save(ctx, name, s.version, value{sealed: c.sealer.seal(name, kindPauses, text)}, min(ends-s.now, longestPause))
		return err
	})
	return saved, err
}

// unsealPauses returns the pauses in a stored value.
func (c *paceClock) unsealPauses(name string, sealed []byte) ([]storedPause, error) {
	text, _, err := c.sealer.open(name, kindPauses, sealed)
	if err != nil {
		return nil, err
	}
	size := binary.Size(storedPause{})
	if len(text)%size != 0 || len(text) > maxPauses*size {
		return nil, errors.New("the pauses have a length that no gate writes")
	}
	all := make([]storedPause, len(text)/size)
	_, err = binary.Decode(text, binary.BigEndian, all)
	return all, err
}

func storePause(token [8]byte, p pace.Pause) storedPause {
	return storedPause{token, p.Since.Microseconds(), p.Until.Microseconds(), p.Ends.Microseconds(), uint8(min(p.Row, 255)), p.First}
}

func (p storedPause) pause() pace.Pause {
	return pace.Pause{Since: micro(p.Since), Until: micro(p.Until), Ends: micro(p.Ends), Row: int(p.Row), First: p.First}
}

// micro returns a number of microseconds as a duration, at most some 285 years.
func micro(n int64) time.Duration {
	return time.Duration(max(0, min(n, 9e15))) * time.Microsecond
}
