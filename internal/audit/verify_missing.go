package audit

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// missing sums up chains that have no record in what was given.
type missing struct {
	chains  int
	records int64
	last    time.Time
}

func (m missing) String() string {
	return fmt.Sprintf("%d, of %d records, the last of %s", m.chains, m.records, m.last.UTC().Format(time.DateTime))
}

// missingByFile is by the file that the chains were written to.
type missingByFile map[string]missing

func (m missingByFile) add(h Head) {
	sum := m[h.File]
	sum.chains++
	sum.records += h.Number
	if h.Time.After(sum.last) {
		sum.last = h.Time
	}
	m[h.File] = sum
}

func (m missingByFile) files() []string { return slices.Sorted(maps.Keys(m)) }

// missingChains checks the heads of chains that have no record in what was given.
func (v *Verifier) missingChains() {
	oldest := map[string]time.Time{} // record of each file that has one
	for name, c := range v.chains {
		if h, ok := v.o.Heads[name]; ok && (oldest[h.File].IsZero() || c.first.Before(oldest[h.File])) {
			oldest[h.File] = c.first
		}
	}
	given := v.given(oldest)
	older, elsewhere, gone := missingByFile{}, missingByFile{}, missingByFile{}
	for _, name := range slices.Sorted(maps.Keys(v.o.Heads)) {
		h := v.o.Heads[name]
		first, some := oldest[h.File]
		switch {
		case v.chains[name] != nil || h.Number == 0:
		case some && h.Time.Before(first):
			older.add(h)
		case h.Stream || !given[h.File]:
			elsewhere.add(h)
		case some:
			v.fault("%s: all %d records of chain %s, written until %s, are missing", h.File, h.Number, name, h.Time.Format(time.DateTime))
		default:
			gone.add(h)
		}
	}
	for _, file := range gone.files() {
		v.fault("%s: no record is left of the chains that were written to it: %s; where they have been rotated, name those files, too", file, gone[file])
	}
	for _, file := range older.files() {
		v.note("chains that were written to %s before what is here, rotated away, removed or not given: %s", outputName(file), older[file])
		v.Before += older[file].records
	}
	for _, file := range elsewhere.files() {
		if v.Records == 0 && len(gone) == 0 {
			v.fault("there is no record in what was given, of the chains that were written to %s: %s", outputName(file), elsewhere[file])
			continue
		}
		v.note("chains that were written to %s, which was not given: %s", outputName(file), elsewhere[file])
	}
}

func outputName(file string) string {
	if file == "-" {
		return "standard output"
	}
	return file
}

// given returns which files of heads have been given: by path, as the same file, or by name,
// since a copy may be anywhere. Of several with one name, files that have records precede.
func (v *Verifier) given(oldest map[string]time.Time) map[string]bool {
	byName := map[string][]string{}
	paths := map[string]bool{}
	for _, h := range v.o.Heads {
		if !h.Stream && !paths[h.File] {
			paths[h.File] = true
			byName[filepath.Base(h.File)] = append(byName[filepath.Base(h.File)], h.File)
		}
	}
	given := map[string]bool{}
	for _, file := range v.o.Files {
		if path, err := filepath.Abs(file); err == nil && paths[path] {
			given[path] = true
			continue
		}
		if path := sameFile(file, paths); path != "" {
			given[path] = true
			continue
		}
		named := byName[filepath.Base(file)]
		if seen := slices.DeleteFunc(slices.Clone(named), func(path string) bool { return oldest[path].IsZero() }); len(seen) > 0 {
			named = seen
		}
		for _, path := range named {
			given[path] = true
		}
	}
	return given
}

// sameFile returns which of the paths leads to a file too, as by a link; empty: none.
func sameFile(file string, paths map[string]bool) string {
	info, err := os.Stat(file)
	if err != nil {
		return "" // as of "-"
	}
	for path := range paths {
		if other, err := os.Stat(path); err == nil && os.SameFile(info, other) {
			return path
		}
	}
	return ""
}

// emptyFiles notes the files without lines.
func (v *Verifier) emptyFiles() {
	for _, file := range v.o.Files {
		if _, ok := v.firstLines[file]; !ok {
			v.note("%s: there is nothing in it", file)
		}
	}
}
