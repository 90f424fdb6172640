// Package field names the fields of settings in errors. A part of the gate knows its own struct, and neither the
// file that the values are from nor the sections around it: whoever reads the file turns a field into file, line
// and key.
package field

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// An Error is an error about one field.
type Error struct {
	Field string // as the yaml tags name it, with the sections around it, such as crawlers[0].name
	Err   error
}

func (e *Error) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// A Source is where values were read. Fields go by their whole path.
type Source interface {
	Given(path string) bool   // whether the source has a value for the field, or for a section
	Where(path string) string // where that is, in words, such as "line 3"
}

// Mistakes collects the mistakes of a struct and of the structs in it.
type Mistakes struct {
	path string // of the struct
	*found
}

// found is what the Mistakes of one source share.
type found struct {
	source Source
	all    []*Error
	bad    map[string]bool // paths that have a mistake already
}

// From returns a collection for values from a source.
func From(s Source) *Mistakes { return &Mistakes{found: &found{source: s, bad: map[string]bool{}}} }

// In returns a collection for a struct in this one, which adds to this one.
func (m *Mistakes) In(section string) *Mistakes { return &Mistakes{m.at(section), m.found} }

// at returns the whole path of a field; "" stands for the struct itself.
func (m *Mistakes) at(field string) string { return Join(m.path, field) }

// Join returns the path of a field in the section at path.
func Join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// Given reports whether the source has a value for a field, which is not the default then.
func (m *Mistakes) Given(field string) bool { return m.source.Given(m.at(field)) }

// Where says where a field was given.
func (m *Mistakes) Where(field string) string { return m.source.Where(m.at(field)) }

// Bad reports whether a field has a mistake already. What follows from it is no mistake of its own.
func (m *Mistakes) Bad(field string) bool { return m.bad[m.at(field)] }

// Skip makes a field count as one with a mistake, so that none is added.
func (m *Mistakes) Skip(field string) { m.bad[m.at(field)] = true }

// Add adds what is wrong with a field. Only the first mistake of a field, or of a section around it, counts:
// others follow from it.
func (m *Mistakes) Add(field, format string, args ...any) {
	path := m.at(field)
	for p := range Around(path) {
		if m.bad[p] {
			return
		}
	}
	m.bad[path] = true
	m.all = append(m.all, &Error{path, fmt.Errorf(format, args...)})
}

// Require adds a mistake unless ok.
func (m *Mistakes) Require(ok bool, field, format string, args ...any) {
	if !ok {
		m.Add(field, format, args...)
	}
}

// Refuse adds err unless it is nil.
func (m *Mistakes) Refuse(field string, err error) { m.Require(err == nil, field, "%w", err) }

// All returns the mistakes in the order in which they were found.
func (m *Mistakes) All() []*Error { return m.all }

// Around yields a path, then those of the sections and lists around it, and "" at last.
func Around(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(path) && path != "" {
			path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		}
	}
}

// Cut bounds the length of a value that a mistake quotes.
func Cut(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// Quote returns a text in quotes, as a configuration in YAML reads it: YAML has all escapes of Go.
func Quote(text string) string {
	return strconv.Quote(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${"))
}

// IsControl reports whether r is a control character of ASCII, which no header field can have.
func IsControl(r rune) bool { return r < ' ' || r == 0x7f }

// Duration returns d as a configuration writes it: 24h, not 24h0m0s.
func Duration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}
