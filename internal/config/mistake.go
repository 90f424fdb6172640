package config

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
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
	file     string
	lines    map[string]int
	mistakes Errors
	bad      map[string]bool // paths that have a mistake already
}

func newSource(file string) source {
	return source{file: file, lines: map[string]int{}, bad: map[string]bool{}}
}

// around yields path, then the sections and lists around it.
func around(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(path) && path != "" {
			path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		}
	}
}

// line returns the line of path, or else of the nearest section around it.
func (s *source) line(path string) int {
	for p := range around(path) {
		if n, ok := s.lines[p]; ok {
			return n
		}
	}
	return 0
}

// has reports whether path is given in the file.
func (s *source) has(path string) bool {
	_, ok := s.lines[path]
	return ok
}

// mistake notes what is wrong with the value at path. Only the first mistake at path or
// around it counts: others follow from it.
func (s *source) mistake(path, format string, args ...any) {
	for p := range around(path) {
		if s.bad[p] {
			return
		}
	}
	s.bad[path] = true
	s.add(s.line(path), "%s: %s", display(path), fmt.Sprintf(format, args...))
}

// require notes a mistake at path unless ok.
func (s *source) require(ok bool, path, format string, args ...any) {
	if !ok {
		s.mistake(path, format, args...)
	}
}

// refuse notes err at path unless it is nil.
func (s *source) refuse(path string, err error) { s.require(err == nil, path, "%v", err) }

func (s *source) add(line int, format string, args ...any) {
	// Text from the file or the environment must not start a line of its own.
	text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
	s.mistakes = append(s.mistakes, Mistake{File: s.file, Line: line, Text: text})
}

// sorted returns the mistakes by line, or nil. A mistake that aliases repeat is
// listed once.
func (s *source) sorted() error {
	if len(s.mistakes) == 0 {
		return nil
	}
	slices.SortFunc(s.mistakes, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	s.mistakes = slices.Compact(s.mistakes)
	return s.mistakes
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// display returns path without indexes, since mistakes have a line.
func display(path string) string { return index.ReplaceAllString(path, "") }
