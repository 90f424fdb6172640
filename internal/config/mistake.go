package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"robotsgate/internal/field"
)

// A Mistake is an error in a configuration, or a warning about it.
type Mistake struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // 1-based; 0 if there is none
	Text string `json:"text"`
}

// String returns FILE:LINE: text, without the parts that are not known.
func (m Mistake) String() string {
	where := m.File
	if m.Line > 0 {
		where += fmt.Sprintf(":%d", m.Line)
	}
	return strings.TrimPrefix(where+": "+m.Text, ": ")
}

// Errors are all mistakes of a configuration, in the order of their lines.
type Errors []Mistake

// Error returns one line for each mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, m := range e {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// A Source has the lines of the keys in a file, and the mistakes found there. Keys go by
// their path, such as crawlers[0].name.
type Source struct {
	name            string
	lines           lines
	options         map[string]string // by key: what gave its value in place of the file, such as an option
	unplaced        Errors            // mistakes that are not about the value of a key
	*field.Mistakes                   // of values
}

func newSource(name string, lines lines) *Source {
	return &Source{name: name, lines: lines, options: map[string]string{}, Mistakes: field.From(lines)}
}

// NoFile returns a Source without keys.
func NoFile() *Source { return newSource("", lines{}) }

// Name returns the name of the file; "" if there is none.
func (s *Source) Name() string { return s.name }

// Any reports whether the file has any key.
func (s *Source) Any() bool { return len(s.lines) > 0 }

// Replace makes a key count as one that is not given, since its value is that of an option. Mistakes name the option.
func (s *Source) Replace(path, option string) {
	delete(s.lines, path)
	s.options[path] = option
}

// Warnings returns a collection for warnings about the file.
func (s *Source) Warnings() *Source {
	w := newSource(s.name, s.lines)
	w.options = s.options
	return w
}

// lines has the lines of the keys in a file. It is a [field.Source].
type lines map[string]int

// Given reports whether the file has a key.
func (l lines) Given(path string) bool {
	_, ok := l[path]
	return ok
}

// Where names the line of a key.
func (l lines) Where(path string) string { return fmt.Sprintf("line %d", l.of(path)) }

// of returns the line of path, or else of the nearest section around it.
func (l lines) of(path string) int {
	for p := range field.Around(path) {
		if n, ok := l[p]; ok {
			return n
		}
	}
	return 0
}

// note notes a mistake in a line.
func (s *Source) note(line int, format string, args ...any) {
	s.unplaced = append(s.unplaced, Mistake{File: s.name, Line: line, Text: oneLine(fmt.Sprintf(format, args...))})
}

// oneLine returns a text without line ends: text from the file or the environment must not start a line of its own.
func oneLine(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }

// Sorted returns the mistakes by line. A mistake that aliases repeat is listed once.
func (s *Source) Sorted() Errors {
	all := slices.Clone(s.unplaced)
	for _, e := range s.All() {
		m := Mistake{File: s.name, Line: s.lines.of(e.Field), Text: oneLine(display(e.Field) + ": " + e.Err.Error())}
		for p := range field.Around(e.Field) {
			if option, ok := s.options[p]; ok {
				m = Mistake{Text: option + ": " + oneLine(e.Err.Error())}
			}
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(all)
}

// Err returns the mistakes as an error, nil if there are none.
func (s *Source) Err() error {
	if all := s.Sorted(); len(all) > 0 {
		return all
	}
	return nil
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// display returns path without indexes, since mistakes have a line.
func display(path string) string { return index.ReplaceAllString(path, "") }
