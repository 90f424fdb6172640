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

// A source has the lines of the keys in a file, and the mistakes found there. Keys go by
// their path, such as crawlers[0].name.
type source struct {
	file            string
	lines           lines
	unplaced        Errors // mistakes that are not about the value of a key
	*field.Mistakes        // of values
}

func newSource(file string, lines lines) source {
	return source{file: file, lines: lines, Mistakes: field.From(lines)}
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

// Given reports whether the file has a key.
func (s *source) Given(path string) bool { return s.lines.Given(path) }

// note notes a mistake in a line.
func (s *source) note(line int, format string, args ...any) {
	s.unplaced = append(s.unplaced, Mistake{File: s.file, Line: line, Text: oneLine(fmt.Sprintf(format, args...))})
}

// oneLine returns a text without line ends: text from the file or the environment must not start a line of its own.
func oneLine(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }

// sorted returns the mistakes by line. A mistake that aliases repeat is listed once.
func (s *source) sorted() Errors {
	all := slices.Clone(s.unplaced)
	for _, e := range s.All() {
		all = append(all, Mistake{File: s.file, Line: s.lines.of(e.Field), Text: oneLine(display(e.Field) + ": " + e.Err.Error())})
	}
	slices.SortFunc(all, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(all)
}

// err returns the mistakes as an error, nil if there are none.
func (s *source) err() error {
	if all := s.sorted(); len(all) > 0 {
		return all
	}
	return nil
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// display returns path without indexes, since mistakes have a line.
func display(path string) string { return index.ReplaceAllString(path, "") }
