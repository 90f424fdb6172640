package robotstxt

import (
	"cmp"
	"iter"
	"slices"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// A Record is a line that is neither User-agent, Allow nor Disallow, such as Crawl-delay,
// Sitemap, or a line of a specification that this package does not know.
//
// A File keeps all of them by name, so to make use of a further one takes no change here:
// call [Group.Records] if it binds the crawlers of the group in which it stands, and
// [File.Records] if its place does not matter, and read the Value.
type Record struct {
	Name    string // as written, but for accepted misspellings of Crawl-delay and Sitemap
	Value   string // without comment, and without white space at its ends
	Line    int    // 1-based
	InGroup bool   // it stands below a User-agent line
}

// maxRecords bounds how many records a File keeps, the first ones, and so the memory that
// they take: some 700 KB. Those of keptNames are kept whatever their number, so that other lines do
// not hide what a site states: a file of 512 KiB has room for some 2.5 MB of them.
const maxRecords = 1 << 14

// keptNames are the names of records that state something about crawlers or their use of the content.
var keptNames = [...]string{syntax.CrawlDelay, "Content-Usage", "Content-Signal", "License"}

// isKept reports whether a name, in any case, is one of keptNames.
func isKept(name string) bool {
	for _, kept := range keptNames {
		if compareFold(name, kept) == 0 {
			return true
		}
	}
	return false
}

// A record is a Record as a File keeps it.
type record struct {
	name, value string
	line        int32
	section     int32 // of the crawlers that it is for; notInGroup if it stands in no group
}

const notInGroup = -1

// Records returns the records with a name, ignoring case, in the order of the file,
// whichever group they stand in.
func (f *File) Records(name string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, r := range f.recordsNamed(name) {
			if !yield(r.public()) {
				return
			}
		}
	}
}

// HasRecord reports whether there is a record with a name, ignoring case, in whichever group.
func (f *File) HasRecord(name string) bool { return len(f.recordsNamed(name)) > 0 }

// Records returns the records of the group with a name, ignoring case, in the order of
// the file. A record between two User-agent lines does not split their group, but a Crawl-delay
// is for the crawlers of the lines directly above it only.
func (g Group) Records(name string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if !g.OK() {
			return
		}
		for _, r := range g.file.recordsNamed(name) {
			if g.hasSection(r.section) && !yield(r.public()) {
				return
			}
		}
	}
}

// HasRecord reports whether the group has a record with a name, ignoring case.
func (g Group) HasRecord(name string) bool {
	if !g.OK() {
		return false
	}
	for _, r := range g.file.recordsNamed(name) {
		if g.hasSection(r.section) {
			return true
		}
	}
	return false
}

// CrawlDelay returns the largest valid Crawl-delay for the group's crawler, and its line.
func (g Group) CrawlDelay() (seconds float64, line int, ok bool) {
	for r := range g.Records(syntax.CrawlDelay) {
		if s, valid := syntax.ParseDelay(r.Value); valid && (!ok || s > seconds) {
			seconds, line, ok = s, r.Line, true
		}
	}
	return seconds, line, ok
}

// LongestCrawlDelay returns the largest valid Crawl-delay of all groups, in seconds, 0 if there is none.
func (f *File) LongestCrawlDelay() (seconds float64) {
	for _, r := range f.recordsNamed(syntax.CrawlDelay) {
		if s, valid := syntax.ParseDelay(r.value); valid && r.section != notInGroup {
			seconds = max(seconds, s)
		}
	}
	return seconds
}

func (r *record) public() Record {
	return Record{Name: r.name, Value: r.value, Line: int(r.line), InGroup: r.section != notInGroup}
}

// recordsNamed returns the records with a name. Every request asks for keptNames, and most files have none of
// them: these are not searched for.
func (f *File) recordsNamed(name string) []record {
	for i := range keptNames {
		if name == keptNames[i] {
			return f.records[f.kept[i].from:f.kept[i].to]
		}
	}
	found := f.findRecords(name)
	return f.records[found.from:found.to]
}

// A span is the part of File.records from one index to before another.
type span struct{ from, to int32 }

// findRecords finds the records with a name: File.records is sorted by name.
func (f *File) findRecords(name string) span {
	start, _ := slices.BinarySearchFunc(f.records, name, func(r record, name string) int { return compareFold(r.name, name) })
	end := start
	for end < len(f.records) && compareFold(f.records[end].name, name) == 0 {
		end++
	}
	return span{int32(start), int32(end)}
}

// compareFold compares strings, ignoring the case of A to Z.
func compareFold(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(syntax.Lower(a[i]), syntax.Lower(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
