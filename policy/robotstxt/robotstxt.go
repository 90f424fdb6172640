// Package robotstxt parses robots.txt files and decides whether a crawler may
// ask for a path, as specified by RFC 9309.
//
// It does no I/O. Fetching, caching, and deciding what a failed fetch means
// belong to package policy.
//
// A file takes this way through the package:
//
//	internal/syntax  bytes to text, text to records: a line number, a key, a value
//	compile.go       records to groups and rules
//	index.go         the rules of a group in such an order that few need be looked at
//
// and a question this:
//
//	decide.go        the verdict
//	group.go         which group the crawler obeys
//	search.go        which rules of that group may match the path
//	sieve.go         the same, where many begin alike
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
	src      syntax.Text
	extra    string     // lower-case names, and the patterns that differ from what was written
	rules    []rule     // section by section, each in the order that index.go wants
	odd      []oddRule  // what a rule cannot hold itself, where it is not in normal form as written
	sieves   []sieve    // of rules with the same literal beginning, where there are many
	sifted   []uint32   // the tables of sieves
	sections []section  // rules that bind the same crawlers
	only     [1]section // the memory of sections where there is but one, as in most files
	names    []name     // ascending
	lists    []uint32   // the sections of a name that has several, see ref
	star     ref        // the sections of "*"; none if there is no such group

}

// Parse reads a robots.txt. It never fails: a line that means nothing is passed
// over, and an HTML page is a file without rules.
//
// If limit is positive and data is longer, the rest is not read, nor is the line
// that the limit cuts in two. A caller that wants Truncated to be right must not
// cut data at the limit itself: one byte more is enough.
func Parse(data []byte, limit int) *File {
	f := &File{src: syntax.Decode(data, limit), star: none}
	compile(f)
	return f
}

// Body returns exactly the bytes that were parsed.
func (f *File) Body() string { return f.src.Body }

// Truncated reports whether the limit has cut something off.
func (f *File) Truncated() bool { return f.src.Truncated }

// Size returns about how many bytes of memory the File keeps.
func (f *File) Size() int {
	size := allocated(unsafe.Sizeof(*f)) +
		allocated(uintptr(len(f.src.Body))) +
		allocated(uintptr(len(f.extra))) +
		allocated(uintptr(cap(f.rules))*unsafe.Sizeof(rule{})) +
		allocated(uintptr(cap(f.odd))*unsafe.Sizeof(oddRule{})) +
		allocated(uintptr(cap(f.sieves))*unsafe.Sizeof(sieve{})) +
		allocated(uintptr(cap(f.sifted))*unsafe.Sizeof(uint32(0))) +
		allocated(uintptr(cap(f.names))*unsafe.Sizeof(name{})) +
		allocated(uintptr(cap(f.lists))*unsafe.Sizeof(uint32(0)))
	if len(f.sections) > len(f.only) {
		size += allocated(uintptr(cap(f.sections)) * unsafe.Sizeof(section{}))
	}
	if len(f.src.Text) != len(f.src.Body) || unsafe.StringData(f.src.Text) != unsafe.StringData(f.src.Body) {
		size += allocated(uintptr(len(f.src.Text)))
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

// Sitemaps returns the values of all Sitemap records, which belong to no group
// (RFC 9309, 2.2.4).
func (f *File) Sitemaps() []string {
	var urls []string
	for s := f.src.Scan(); s.Next(); {
		if s.Kind == syntax.Sitemap && s.Value != "" {
			urls = append(urls, s.Value)
		}
	}
	return urls
}

// A Record is a line with a key that this package knows nothing about.
type Record struct {
	Line  int // 1-based
	Key   string
	Value string
}

// Records returns every unknown record, for those who know more of them. Where
// they stand takes no memory: the text is read again.
func (f *File) Records() []Record {
	var records []Record
	for s := f.src.Scan(); s.Next(); {
		if s.Kind == syntax.Unknown {
			records = append(records, Record{Line: s.Line, Key: s.Key, Value: s.Value})
		}
	}
	return records
}
