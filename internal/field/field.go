// Package field has the mistakes in settings, by the names of their fields. A part of the gate knows its own struct, and
// neither the file that the values are from nor the sections around it.
package field

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Mistake is an error in a configuration, or a warning about it.
type Mistake struct {
	File string
	Line int // 1-based; less if the value is not the file's
	Text string
}

// Error returns FILE:LINE: text, or only the text of what is not in the file, in one line.
func (m Mistake) Error() string {
	where := ""
	if m.Line > 0 {
		where = fmt.Sprintf("%s:%d: ", m.File, m.Line)
	}
	// Text from the file or the environment must not start a line of its own.
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(where + m.Text)
}

// Mistakes collects the mistakes of a struct and of the structs in it. A field has a path, such as crawlers[0].name.
type Mistakes struct {
	path string // of the struct
	*found
}

// found is what the Mistakes of one file share. Its keys are whole paths.
type found struct {
	File  string          // "" if the values are from none
	Lines map[string]int  // of the fields and sections that the file has; -1: an option replaces the value
	bad   map[string]bool // has a mistake already
	all   []Mistake
}

// New returns a collection for values from a file.
func New(file string) *Mistakes {
	return &Mistakes{found: &found{file, map[string]int{}, map[string]bool{}, nil}}
}

// Warnings returns a collection for warnings about the same file.
func (m *Mistakes) Warnings() *Mistakes {
	return &Mistakes{found: &found{m.File, m.Lines, map[string]bool{}, nil}}
}

// In returns a collection for a struct in this one, which adds to this one.
func (m *Mistakes) In(section string) *Mistakes { return &Mistakes{Join(m.path, section), m.found} }

// Join returns the path of a field in the section at path; "" stands for the section itself.
func Join(path, field string) string { return strings.Trim(path+"."+field, ".") }

// Replace makes a field count as one that is not given, since its value is that of an option. Its mistakes have no line.
func (m *Mistakes) Replace(field string) { m.Lines[Join(m.path, field)] = -1 }

// Given reports whether the file has a value for a field, which is not the default then.
func (m *Mistakes) Given(field string) bool { return m.Lines[Join(m.path, field)] > 0 }

// Bad reports whether a field has a mistake already. What follows from it is no mistake of its own.
func (m *Mistakes) Bad(field string) bool { return m.bad[Join(m.path, field)] }

// Skip makes a field count as one with a mistake, so that none is added.
func (m *Mistakes) Skip(field string) { m.bad[Join(m.path, field)] = true }

var index = regexp.MustCompile(`\[[0-9]+\]`)

// Display returns path without indexes, since mistakes have a line.
func Display(path string) string { return index.ReplaceAllString(path, "") }

// Add adds what is wrong with a field. Only the first mistake of a field, or of a section around it, counts:
// others follow from it.
func (m *Mistakes) Add(field, format string, args ...any) {
	path, line := Join(m.path, field), 0
	for p, more := path, true; more; more = p != "" {
		if m.bad[p] {
			return
		}
		line = cmp.Or(line, m.Lines[p])
		p = p[:max(strings.LastIndexAny(p, ".["), 0)]
	}
	m.bad[path] = true
	m.AddLine(line, "%s", strings.TrimPrefix(Display(path)+": "+fmt.Sprintf(format, args...), ": "))
}

// AddLine adds what is wrong with a line.
func (m *Mistakes) AddLine(line int, format string, args ...any) {
	m.all = append(m.all, Mistake{m.File, line, fmt.Sprintf(format, args...)})
}

// Require adds a mistake unless ok.
func (m *Mistakes) Require(ok bool, field, format string, args ...any) {
	if !ok {
		m.Add(field, format, args...)
	}
}

// Refuse adds err unless it is nil.
func (m *Mistakes) Refuse(field string, err error) { m.Require(err == nil, field, "%v", err) }

// All returns the mistakes by line. A mistake that aliases repeat is listed once.
func (m *Mistakes) All() []Mistake {
	slices.SortFunc(m.all, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	m.all = slices.Compact(m.all)
	return m.all
}

// Err returns the mistakes as an error with a line for each, nil if there are none.
func (m *Mistakes) Err() error {
	var all []error
	for _, mistake := range m.All() {
		all = append(all, mistake)
	}
	return errors.Join(all...)
}
