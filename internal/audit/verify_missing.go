package audit

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// beginning looks at records that nothing of their chain is missing before. Where a
// file begins with them, they must say so: another chain's may be missing there.
func (v *Verifier) beginning(name string, r run) {
	if r.place == begins || v.firstLines[r.file] != r.lines[0] {
		return
	}
	h, ok := v.head(name)
	switch {
	case ok && h.Stream:
	case ok:
		v.wrong("%s:%d: the file has not begun with this record: what stood before it is missing", r.file, r.lines[0])
	default:
		v.note("%s:%d: whether something is missing before this record was not checked: it does not say that a file begins with it, as in what was standard output", r.file, r.lines[0])
	}
}

// Later takes heads again, after the lines: a gate may be running. How far chains had come
// that have begun since NewVerifier got them, when their records were read, is not known.
func (v *Verifier) Later(heads map[string]Head) {
	v.later = heads
	for name, h := range heads {
		if _, ok := v.heads[name]; ok || v.chains[name] == nil {
			continue
		}
		if v.heads == nil {
			v.heads = map[string]Head{}
		}
		v.heads[name] = Head{Chain: name, File: h.File, Stream: h.Stream}
	}
}

// An unseen is chains of which there is no record.
type unseen struct {
	chains  int
	records int64
	last    time.Time
}

func (u unseen) String() string {
	return fmt.Sprintf("%d, of %d records, the last of %s", u.chains, u.records, u.last.UTC().Format(time.DateTime))
}

// unseen looks at the heads of chains of which there is no record at all, by the file
// that they were written to.
func (v *Verifier) unseen() {
	first := map[string]time.Time{} // record of each file that there is
	for name, t := range v.chains {
		if h, ok := v.heads[name]; ok && (first[h.File].IsZero() || t.first.Before(first[h.File])) {
			first[h.File] = t.first
		}
	}
	given := v.writtenTo(first)
	older, elsewhere, gone := map[string]unseen{}, map[string]unseen{}, map[string]unseen{}
	for _, name := range slices.Sorted(maps.Keys(v.heads)) {
		h := v.heads[name]
		oldest, some := first[h.File]
		switch {
		case v.chains[name] != nil || h.Number == 0:
		case some && h.Time.Before(oldest):
			older[h.File] = older[h.File].and(h)
		case h.Stream || !given[h.File]:
			elsewhere[h.File] = elsewhere[h.File].and(h)
		case some:
			v.wrong("%s: all %d records of chain %s, written until %s, are missing", h.File, h.Number, name, h.Time.Format(time.DateTime))
		default:
			gone[h.File] = gone[h.File].and(h)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(gone)) {
		v.wrong("%s: no record is left of the chains that were written to it: %s; where they have been rotated, name those files, too", file, gone[file])
	}
	for _, file := range slices.Sorted(maps.Keys(older)) {
		v.note("chains that were written to %s before what is here, rotated away, removed or not given: %s", named(file), older[file])
		v.Before += older[file].records
	}
	for _, file := range slices.Sorted(maps.Keys(elsewhere)) {
		if v.Records == 0 && len(gone) == 0 {
			v.wrong("there is no record in what was given, of the chains that were written to %s: %s", named(file), elsewhere[file])
			continue
		}
		v.note("chains that were written to %s, which was not given: %s", named(file), elsewhere[file])
	}
}

func (u unseen) and(h Head) unseen {
	u.chains++
	u.records += h.Number
	if h.Time.After(u.last) {
		u.last = h.Time
	}
	return u
}

func named(file string) string {
	if file == "-" {
		return "standard output"
	}
	return file
}

// writtenTo returns which files of heads have been given: by their path, as the same
// file, or, as a copy may lie anywhere, by their name. Of several of one name those count of which there are
// records.
func (v *Verifier) writtenTo(some map[string]time.Time) map[string]bool {
	names := map[string][]string{}
	paths := map[string]bool{}
	for _, h := range v.heads {
		if !h.Stream && !paths[h.File] {
			paths[h.File] = true
			names[filepath.Base(h.File)] = append(names[filepath.Base(h.File)], h.File)
		}
	}
	given := map[string]bool{}
	for _, file := range v.given {
		if path, err := filepath.Abs(file); err == nil && paths[path] {
			given[path] = true
			continue
		}
		if path := sameFile(file, paths); path != "" {
			given[path] = true
			continue
		}
		like := names[filepath.Base(file)]
		if seen := slices.DeleteFunc(slices.Clone(like), func(path string) bool { return some[path].IsZero() }); len(seen) > 0 {
			like = seen
		}
		for _, path := range like {
			given[path] = true
		}
	}
	return given
}

// sameFile returns which of the paths is another name of a file, as by a link.
func sameFile(file string, paths map[string]bool) string {
	info, err := os.Stat(file)
	if err != nil {
		return "" // as "-", or where it is gone
	}
	for path := range paths {
		if other, err := os.Stat(path); err == nil && os.SameFile(info, other) {
			return path
		}
	}
	return ""
}

// empty names the files without records.
func (v *Verifier) empty() {
	for _, file := range v.given {
		if _, ok := v.firstLines[file]; !ok {
			v.note("%s: there is nothing in it", file)
		}
	}
}
