package fleet

import (
	"context"
	"errors"
	"time"

	"robotsgate/policy/pace"
)

// A server is the fleet's store: a Valkey or Redis. Each method is one round trip, and atomic. Names are as
// [sealer.name] makes them; the values are sealed, except where a comment says otherwise.
//
// The context always has a deadline. An error is errWrongType if a key has a value of another type
// than the fleet's: the next write under it replaces it. It is errTooLong if an argument is longer
// than the store takes. Any other error means that the store can't be used now.
type server interface {
	// load returns what is stored under a name. With withBody it has the body too.
	load(ctx context.Context, name string, withBody bool) (stored, error)
	// save stores a value for ttl, if version is still that of the stored value: 0 if there was none.
	// It reports whether it has.
	save(ctx context.Context, name string, version int64, v value, ttl time.Duration) (bool, error)

	// acquire takes the lease of a name for ttl, if no gate has it: fence is a number that no
	// other lease of that name has. If another gate has it, fence is 0.
	acquire(ctx context.Context, name, gate string, ttl time.Duration) (fence int64, err error)
	// renew makes a lease last for ttl from now on. It reports false if it has ended.
	renew(ctx context.Context, name string, fence int64, ttl time.Duration) (bool, error)
	// release ends a lease, unless it has ended.
	release(ctx context.Context, name string, fence int64) error

	// reserve reserves the next start under a name, as [pace.Starts.Reserve] does, by the store's clock. It does
	// not look at r.Key.
	reserve(ctx context.Context, name string, r pace.Reservation) (pace.Grant, error)

	// notify adds a notice for all gates. The store keeps the last maxNotices.
	notify(ctx context.Context, notice []byte) error
	// notices returns the notices after a position, in order, and the position of the last one.
	// The position before all is firstNotice.
	notices(ctx context.Context, after string) (all [][]byte, last string, err error)

	// announce stores value, a gate's announcement, under its id, or removes the stored one if value is
	// empty. It removes announcements older than keep. It returns the announcements of the other gates by
	// id, under id the one that it has replaced, and the store's time. It is also the test whether the
	// store can be used, so it reads and writes.
	announce(ctx context.Context, id string, value []byte, keep time.Duration) (gates map[string][]byte, now time.Time, err error)

	close()
}

// errWrongType is the error for a key with a value of another type than the fleet's.
var errWrongType = errors.New("the key has a value of another type")

// errTooLong is the error for an argument that is longer than the store takes.
var errTooLong = errors.New("the value is too long")

// maxNotices bounds the notices that the store keeps.
const maxNotices = 1000

// A value is what is stored under the name of a scope.
type value struct {
	sealed []byte
	body   []byte // of the good copy in the set; nil: the stored one stays
}

// stored is a value with its version, which changes with each save. The version of nothing is 0.
type stored struct {
	value
	version int64
	now     time.Duration // the store's time when it was loaded
}
