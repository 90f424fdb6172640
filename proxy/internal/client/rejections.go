package client

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxNamed bounds the names that are kept between two lines of the log.
const maxNamed = 100

// rejections count what was rejected for one reason, by the name of a client or a crawler.
type rejections struct {
	total  int64
	unsaid map[string]int // since the last line
	logged time.Time
}

// add counts one. Once a minute it returns the names since the last time, with the counts, the
// most frequent ones first.
func (r *rejections) add(name string, now time.Time) (names []string) {
	r.total++
	if r.unsaid == nil {
		r.unsaid = map[string]int{}
	}
	if _, known := r.unsaid[name]; !known && len(r.unsaid) >= maxNamed {
		name = "others"
	}
	r.unsaid[name]++
	if now.Sub(r.logged) < time.Minute {
		return nil
	}
	names = slices.SortedFunc(maps.Keys(r.unsaid), func(a, b string) int {
		return cmp.Or(r.unsaid[b]-r.unsaid[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, r.unsaid[name])
	}
	r.logged = now
	clear(r.unsaid)
	return names[:min(len(names), 5)]
}
