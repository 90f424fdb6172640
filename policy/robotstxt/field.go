package robotstxt

import (
	"cmp"
	"iter"
	"slices"
)

// A Field is a line that is neither User-agent, Allow nor Disallow, such as Crawl-delay,
// Sitemap, or a line of a specification that this package does not know: an other record, as RFC 9309, 2.2.4 has it.
//
// A File keeps all of them by name, so to make use of a further one takes no change here:
// call [Group.Fields] if it binds the crawlers of the group in which it stands, and
// [File.Fields] if its place does not matter, and read the Value.
type Field struct {
	Name    string // as written, but for accepted misspellings of Crawl-delay and Sitemap
	Value   string // without comment, and without white space at its ends
	Line    int    // 1-based
	InGroup bool   // it stands below a User-agent line
}

// maxFields bounds how many fields a File keeps, the first ones, and so the memory that
// they take: some 700 KB. Those of keptNames are kept whatever their number, so that other lines do
// not hide what a site states: a file of 512 KiB has room for some 2.5 MB of them.
const maxFields = 1 << 14

// A field is a Field as a File keeps it.
type field struct {
	name, value string
	line        int32
	section     int32 // of the crawlers that it is for; notInGroup if it stands in no group
}

const notInGroup = -1

// Fields returns the fields with a name, ignoring case, in the order of the file,
// whichever group they stand in.
func (f *File) Fields(name string) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for _, r := range f.fieldsNamed(name) {
			if !yield(r.public()) {
				return
			}
		}
	}
}

// HasField reports whether there is a field with a name, ignoring case, in whichever group.
func (f *File) HasField(name string) bool { return len(f.fieldsNamed(name)) > 0 }

// Fields returns the fields with a name, ignoring case, that bind the group's crawler, in the order of
// the file. A field between two User-agent lines does not split their group, but it binds only the
// crawlers of the lines directly above it.
func (g Group) Fields(name string) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		if !g.OK() {
			return
		}
		for _, r := range g.file.fieldsNamed(name) {
			if g.hasSection(r.section) && !yield(r.public()) {
				return
			}
		}
	}
}

// HasField reports whether the group has a field with a name, ignoring case.
func (g Group) HasField(name string) bool {
	for range g.Fields(name) {
		return true
	}
	return false
}

// CrawlDelay returns the largest valid Crawl-delay for the group's crawler, and its line.
func (g Group) CrawlDelay() (seconds float64, line int, ok bool) {
	for r := range g.Fields(crawlDelay) {
		if s, valid := parseDelay(r.Value); valid && (!ok || s > seconds) {
			seconds, line, ok = s, r.Line, true
		}
	}
	return seconds, line, ok
}

// LongestCrawlDelay returns the largest valid Crawl-delay of all groups, in seconds, 0 if there is none.
func (f *File) LongestCrawlDelay() (seconds float64) {
	for _, r := range f.fieldsNamed(crawlDelay) {
		if s, valid := parseDelay(r.value); valid && r.section != notInGroup {
			seconds = max(seconds, s)
		}
	}
	return seconds
}

func (r *field) public() Field {
	return Field{Name: r.name, Value: r.value, Line: int(r.line), InGroup: r.section != notInGroup}
}

// fieldsNamed returns the fields with a name. Every request asks for those of keptNames, and most files have none of
// them: these are not searched for.
func (f *File) fieldsNamed(name string) []field {
	for i := range keptNames {
		if name == keptNames[i] {
			return f.fields[f.kept[i].from:f.kept[i].to]
		}
	}
	found := f.findFields(name)
	return f.fields[found.from:found.to]
}

// A span is the part of File.fields from one index to before another.
type span struct{ from, to int32 }

// findFields finds the fields with a name: File.fields is sorted by name.
func (f *File) findFields(name string) span {
	start, _ := slices.BinarySearchFunc(f.fields, name, func(r field, name string) int { return compareFold(r.name, name) })
	end := start
	for end < len(f.fields) && compareFold(f.fields[end].name, name) == 0 {
		end++
	}
	return span{int32(start), int32(end)}
}

// compareFold compares strings, ignoring the case of A to Z.
func compareFold(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(lower(a[i]), lower(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
