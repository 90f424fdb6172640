package client

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"robotsgate/internal/logtext"
)

// maxNamed bounds the names that are kept between two lines of the log.
const maxNamed = 100

// Rejections count what was rejected for one reason, by the name of a client or a crawler.
type Rejections struct {
	total  int64
	unsaid map[string]int // since the last line
	logged logtext.Minute
}

// Total returns how many there were. A nil Rejections has none.
func (r *Rejections) Total() int64 {
	if r == nil {
		return 0
	}
	return r.total
}

// Add counts one. Once a minute it returns the names since the last time, with the counts, the
// most frequent ones first.
func (r *Rejections) Add(name string) (names []string) {
	r.total++
	if r.unsaid == nil {
		r.unsaid = map[string]int{}
	}
	if _, known := r.unsaid[name]; !known && len(r.unsaid) >= maxNamed {
		name = "others"
	}
	r.unsaid[name]++
	if r.logged.Add() == 0 {
		return nil
	}
	names = slices.SortedFunc(maps.Keys(r.unsaid), func(a, b string) int {
		return cmp.Or(r.unsaid[b]-r.unsaid[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, r.unsaid[name])
	}
	clear(r.unsaid)
	return names[:min(len(names), 5)]
}
