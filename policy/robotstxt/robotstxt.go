// Package robotstxt parses robots.txt files and decides whether a crawler may
// ask for a path, as specified by RFC 9309.
//
// It does no I/O. Fetching, caching, and deciding what a failed fetch means
// belong to package policy.
//
// A file takes this way through the package:
//
//	internal/syntax  bytes to text, text to records: a line number, a key, a value
//	parse.go         records to groups and rules
//	index.go         the rules of a group in such an order that few need be looked at
//
// and a question this:
//
//	decide.go        the verdict
//	group.go         which group the crawler obeys
//	search.go        which rules of that group may match the path
//	prefilter.go     the same, where many begin alike
//	match.go         which of them do, section by section
//	internal/match   how one pattern matches, in the normal form of patterns and paths
//
// url.go takes the path out of whatever somebody calls a URL. Package lint finds what a
// file's author may not have meant.
package robotstxt

import (
	"unsafe"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// A File is a parsed robots.txt. It is immutable, and so safe for use by
// several goroutines at once.
//
// A proxy keeps one for every origin it has met, which is why it is a handful
// of flat slices: rules hold offsets into the text instead of strings.
type File struct {
	body     string     // the bytes that were parsed
	text     string     // body in UTF-8: the same string, unless body is UTF-16
	extra    string     // lower-case names, and the patterns that differ from what was written
	rules    []rule     // section by section, each in the order that index.go wants
	odd      []oddRule  // what a rule cannot hold itself, where it is not in normal form as written
	sieves   []sieve    // of rules with the same literal beginning, where there are many
	sifted   []uint32   // the tables of sieves
	sections []section  // rules that bind the same crawlers
	only     [1]section // the memory of sections where there is but one, as in most files
	names    []name     // ascending
	lists    []uint32   // the sections of a name that has several, see ref
	records  []record   // sorted by name, then by line
	star     ref        // the sections of "*"; none if there is no such group

	truncated bool
}

// Parse reads a robots.txt. It never fails: a line that means nothing is passed
// over, and an HTML page is a file without rules. Lines that are neither User-agent,
// Allow nor Disallow are kept for whoever reads them, see [Record].
//
// If limit is positive and data is longer, the rest is not read, nor is the line
// that the limit cuts in two. A caller that wants Truncated to be right must not
// cut data at the limit itself: one byte more is enough.
func Parse(data []byte, limit int) *File {
	t := syntax.Decode(data, limit)
	f := &File{body: t.Body, text: t.Text, truncated: t.Truncated, star: none}
	compile(f, t.Scan())
	return f
}

// Body returns exactly the bytes that were parsed.
func (f *File) Body() string { return f.body }

// Truncated reports whether the limit has cut something off.
func (f *File) Truncated() bool { return f.truncated }

// Size returns about how many bytes of memory the File keeps.
func (f *File) Size() int {
	size := allocated(unsafe.Sizeof(*f)) +
		allocated(uintptr(len(f.body))) +
		allocated(uintptr(len(f.extra))) +
		allocated(uintptr(cap(f.rules))*unsafe.Sizeof(rule{})) +
		allocated(uintptr(cap(f.odd))*unsafe.Sizeof(oddRule{})) +
		allocated(uintptr(cap(f.sieves))*unsafe.Sizeof(sieve{})) +
		allocated(uintptr(cap(f.sifted))*unsafe.Sizeof(uint32(0))) +
		allocated(uintptr(cap(f.names))*unsafe.Sizeof(name{})) +
		allocated(uintptr(cap(f.lists))*unsafe.Sizeof(uint32(0))) +
		allocated(uintptr(cap(f.records))*unsafe.Sizeof(record{}))
	if len(f.sections) > len(f.only) {
		size += allocated(uintptr(cap(f.sections)) * unsafe.Sizeof(section{}))
	}
	if len(f.text) != len(f.body) || unsafe.StringData(f.text) != unsafe.StringData(f.body) {
		size += allocated(uintptr(len(f.text)))
	}
	return size
}

// allocated estimates what an object of n bytes takes: Go rounds up to size
// classes about an eighth apart, and large objects to whole pages.
func allocated(n uintptr) int {
	switch {
	case n == 0:
		return 0
	case n > 32<<10:
		return int(n+8191) &^ 8191
	case n < 128:
		return int(n+15) &^ 15
	}
	return int(n + n/16)
}
