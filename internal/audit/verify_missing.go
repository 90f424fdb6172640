package audit

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// missing sums up the chains that were written to a file and have no record in what was given.
type missing struct {
	chains  int
	records int64
	last    time.Time
}

func (m *missing) add(h Head) {
	m.chains++
	m.records += h.Number
	if h.Time.After(m.last) {
		m.last = h.Time
	}
}

func (m missing) String() string {
	return fmt.Sprintf("%d, of %d records, the last of %s", m.chains, m.records, m.last.UTC().Format(time.DateTime))
}

// Where the records of missing chains are. The texts take the file that the chains were written
// to, and the sum of the chains.
const (
	gone      = "%s: no record is left of the chains that were written to it: %s; where they have been rotated, name those files, too"
	older     = "chains that were written to %s before what is here, rotated away, removed or not given: %s"
	elsewhere = "chains that were written to %s, which was not given: %s"
	nothing   = "there is no record in what was given, of the chains that were written to %s: %s"
)

// missingChains checks the heads of chains that have no record in what was given.
func (v *Verifier) missingChains() {
	oldest := map[string]time.Time{} // record of each file that has one
	for name, c := range v.chains {
		if h, ok := v.o.Heads[name]; ok {
			oldest[h.File] = earliest(oldest[h.File], c.first)
		}
	}
	given := v.given(oldest)
	type place struct{ text, file string }
	sums := map[place]missing{}
	for _, name := range slices.Sorted(maps.Keys(v.o.Heads)) {
		h := v.o.Heads[name]
		if v.chains[name] != nil || h.Number == 0 {
			continue
		}
		first, some := oldest[h.File]
		text := gone
		switch {
		case some && h.Time.Before(first):
			text = older
			v.Before += h.Number
		case (h.Stream || !given[h.File]) && v.Records == 0:
			text = nothing
		case h.Stream || !given[h.File]:
			text = elsewhere
		case some:
			v.fault("%s: all %d records of chain %s, written until %s, are missing", h.File, h.Number, name, h.Time.Format(time.DateTime))
			continue
		}
		sum := sums[place{text, h.File}]
		sum.add(h)
		sums[place{text, h.File}] = sum
	}
	places := slices.SortedFunc(maps.Keys(sums), func(a, b place) int {
		return cmp.Or(strings.Compare(a.text, b.text), strings.Compare(a.file, b.file))
	})
	for _, p := range places {
		file := p.file
		if file == "-" {
			file = "standard output"
		}
		if p.text == gone || p.text == nothing {
			v.fault(p.text, file, sums[p])
		} else {
			v.note(p.text, file, sums[p])
		}
	}
}

// given returns which files of heads have been given: as the same file, or by name, since a copy
// may be anywhere. Of several with one name, files that have records precede.
func (v *Verifier) given(oldest map[string]time.Time) map[string]bool {
	paths := map[string]bool{}
	for _, h := range v.o.Heads {
		if !h.Stream {
			paths[h.File] = true
		}
	}
	given := map[string]bool{}
	for _, file := range v.o.Files {
		info, err := os.Stat(file) // an error as of "-"
		isSame := func(path string) bool {
			other, errOther := os.Stat(path)
			return err == nil && errOther == nil && os.SameFile(info, other)
		}
		hasName := func(path string) bool { return filepath.Base(path) == filepath.Base(file) }
		hasRecords := func(path string) bool { return hasName(path) && !oldest[path].IsZero() }
		for _, matches := range []func(string) bool{isSame, hasRecords, hasName} {
			named := slices.DeleteFunc(slices.Collect(maps.Keys(paths)), func(path string) bool { return !matches(path) })
			for _, path := range named {
				given[path] = true
			}
			if len(named) > 0 {
				break
			}
		}
	}
	return given
}
