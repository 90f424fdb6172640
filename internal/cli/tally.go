package cli

import (
	"fmt"
	"hash/maphash"
	"net/url"
	"sync"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// maxPlaces bounds the places that a tally tells apart, since clients may ask for
// any number.
const maxPlaces = 100_000

// A tally is what became of requests so far, for people to look at.
type tally struct {
	place func(*proxy.Record) string // that a request is for; "": none that counts

	mu          sync.Mutex
	requests    int
	denied      int
	reported    int // that would have been denied
	unreachable int // of those denied or reported
	seed        maphash.Seed
	places      map[uint64]struct{} // their hashes
}

func newTally(place func(*proxy.Record) string) *tally {
	return &tally{place: place, seed: maphash.MakeSeed(), places: map[uint64]struct{}{}}
}

func hostOf(x *proxy.Record) string {
	u, err := url.Parse(x.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// count counts a request that is over.
func (t *tally) count(x *proxy.Record) {
	place := t.place(x)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	if place != "" && len(t.places) < maxPlaces {
		t.places[maphash.String(t.seed, place)] = struct{}{}
	}
	d := x.Decision
	switch {
	case d == nil || d.Allow:
		return
	case d.Enforced:
		t.denied++
	default:
		t.reported++
	}
	if d.Reason == policy.IsUnreachable {
		t.unreachable++
	}
}

// counted returns how many places there were, in words. The caller holds mu.
func (t *tally) counted(word string) string {
	if len(t.places) == maxPlaces {
		return "at least " + plural(maxPlaces, word)
	}
	return plural(len(t.places), word)
}

// String sums up in a line.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	reported := ""
	if t.reported > 0 {
		reported = fmt.Sprintf(", %d denied but let through", t.reported)
	}
	return fmt.Sprintf("%s, %d denied%s, %s", plural(t.requests, "request"), t.denied, reported, t.counted("host"))
}
