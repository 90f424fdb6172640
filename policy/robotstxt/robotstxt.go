// Package robotstxt parses robots.txt files and decides whether a crawler may
// request a path, as specified by RFC 9309.
//
// Use [Parse] first, and then [File.Decide] with the path of a URL, see [canonical.PathOf], and the
// crawler's product token:
//
//	f := robotstxt.Parse(data, 0)
//	v := f.Decide(canonical.PathOf(url), "ExampleBot")
//
// [File.Group] returns the rules of one crawler, and [Group.Fields] the other lines that
// bind it, such as Crawl-delay. Servers read some paths in several ways, see [Readings].
//
// The package does no I/O. Fetching, caching, and deciding what a failed fetch means
// belong to package policy/snapshot.
package robotstxt

// How the files fit together. A robots.txt is parsed by
//
//	text.go             bytes to text
//	scanner.go          text to fields: a line number, a name, a value
//	parse.go            fields to groups and rules
//	pattern.go          the pattern of a rule, and of other lines that have one
//
// and a decision is made by
//
//	group.go            which group the crawler obeys
//	decide.go           which rule of that group governs the path, and the verdict
//	code.go, path.go    whether one rule matches

import (
	"unsafe"
)

// A File is a parsed robots.txt. It is immutable, and so safe for use by
// several goroutines at once.
type File struct {
	body      string // the bytes that were parsed
	text      string // body in UTF-8: the same string, unless body is UTF-16
	truncated bool
	size      int

	sections []section
	bindings []binding            // sorted by name, then by section
	fields   []field              // sorted by name, then by line
	kept     [len(keptNames)]span // where the fields of keptNames are
}

// Body returns exactly the bytes that were parsed.
func (f *File) Body() string { return f.body }

// Truncated reports whether the limit has cut something off.
func (f *File) Truncated() bool { return f.truncated }

// Size returns about how many bytes of memory the File keeps.
func (f *File) Size() int { return f.size }

func (f *File) measure() int {
	size := bytesOf[File](1) + bytesOf[byte](len(f.body)) +
		bytesOf[section](len(f.sections)) + bytesOf[binding](len(f.bindings)) + bytesOf[field](len(f.fields))
	if f.text != f.body { // UTF-16
		size += bytesOf[byte](len(f.text))
	}
	for _, b := range f.bindings {
		size += bytesOf[byte](len(b.name))
	}
	for i := range f.sections {
		rules := f.sections[i].rules
		size += bytesOf[rule](len(rules))
		for j := range rules {
			if r := &rules[j]; r.pattern != f.written(r) {
				size += bytesOf[byte](len(r.pattern))
			}
		}
	}
	return size
}

// bytesOf estimates what n values of a type take: Go rounds up to size classes about an
// eighth apart, and large objects to whole pages.
func bytesOf[T any](n int) int {
	var t T
	switch size := n * int(unsafe.Sizeof(t)); {
	case size > 32<<10:
		return (size + 8191) &^ 8191
	case size < 128:
		return (size + 15) &^ 15
	default:
		return size + size/16
	}
}
