package config

import (
	"fmt"
	"slices"
	"strings"
)

// A Mistake is something to change in a configuration, or to look at.
type Mistake struct {
	File string
	Line int // 1-based; 0 if it concerns no line
	Text string
}

// String returns FILE:LINE: text, as far as these are known.
func (m Mistake) String() string {
	switch {
	case m.File == "":
		return m.Text
	case m.Line == 0:
		return fmt.Sprintf("%s: %s", m.File, m.Text)
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
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

// source remembers where each key stood, by its path such as
// crawlers[0].name, and collects the mistakes found there.
type source struct {
	file     string
	lines    map[string]int
	mistakes Errors
	bad      map[string]bool // paths that have a mistake already
}

// line returns the line of path, or that of the nearest thing around it.
func (s *source) line(path string) int {
	for {
		if n, ok := s.lines[path]; ok {
			return n
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}

// has reports whether path is given in the file.
func (s *source) has(path string) bool {
	_, ok := s.lines[path]
	return ok
}

// mistake notes what is wrong with the value at path. Only the first one
// counts: whatever else could be said would follow from it.
func (s *source) mistake(path, format string, args ...any) {
	if s.bad[path] {
		return
	}
	s.bad[path] = true
	s.add(s.line(path), "%s: %s", display(path), fmt.Sprintf(format, args...))
}

func (s *source) add(line int, format string, args ...any) {
	// Text from the file or the environment must not start a line of its own.
	text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
	m := Mistake{File: s.file, Line: line, Text: text}
	if !slices.Contains(s.mistakes, m) { // an alias may repeat one
		s.mistakes = append(s.mistakes, m)
	}
}

// sorted returns the mistakes by line, or nil.
func (s *source) sorted() error {
	if len(s.mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(s.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
	return s.mistakes
}

// display leaves the indexes out of a path, since the line says which one.
func display(path string) string {
	var b strings.Builder
	for rest := path; rest != ""; {
		before, after, _ := strings.Cut(rest, "[")
		b.WriteString(before)
		_, rest, _ = strings.Cut(after, "]")
	}
	return b.String()
}
