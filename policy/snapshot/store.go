package snapshot

import "context"

// A Store keeps what is known of files of origins, in sets, beyond what fits into memory and beyond the life of the
// process. Several processes may share one.
//
// A store may forget a set at any time, which costs a fetch. It must not
// return a set that was not saved under the key, nor one with a Body that differs
// from the digest in Good. Everything that it has to keep is in the exported
// fields of [Set], which encoding/json can encode.
//
// Methods are safe for concurrent use and return soon after their context ends.
type Store interface {
	// Load returns the set under a key, which is that of a [Scope]. ok is false if
	// there is none, or if it can't be read.
	Load(ctx context.Context, key string) (set Set, ok bool)

	// Save keeps the set in place of that under the key; if it is empty, the store forgets that. A store that gates share
	// may [Merge] the two, so that a late result replaces nothing newer.
	Save(ctx context.Context, key string, set Set) error

	// Acquire asks for permission to fetch a file, so that of several processes only
	// one fetches it. It waits while another process has permission for the same key. It returns
	// when the permission is free, ctx ends, or the store fails; in all cases the caller may fetch.
	// Ctx lasts for Settings.Timeout and 4 s: as long as another process may need.
	//
	// If changed is true, another process may have saved a set under the key since the
	// caller loaded it, so the caller loads it again before it fetches. After any wait return
	// changed=true: that is always correct and costs one Load.
	//
	// The caller calls release when what it has fetched is saved, or when it has fetched nothing. It
	// is nil if there is nothing to release. Otherwise other processes may be waiting, so the caller
	// saves without delay. A permission must end by itself too, since the process that has it may be killed. It has to
	// last at least for a fetch, which takes Settings.Timeout at most, and the save that follows.
	//
	// A store that gives no permissions returns nil and false at once.
	Acquire(ctx context.Context, key string) (release func(), changed bool)
}

// noStore is the Store of a resolver without one.
type noStore struct{}

func (noStore) Load(context.Context, string) (Set, bool)       { return Set{}, false }
func (noStore) Save(context.Context, string, Set) error        { return nil }
func (noStore) Acquire(context.Context, string) (func(), bool) { return nil, false }
