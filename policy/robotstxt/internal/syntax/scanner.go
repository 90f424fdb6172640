package syntax

import "strings"

// A Kind is what a record's key says it is.
type Kind uint8

const (
	Unknown Kind = iota
	UserAgent
	Allow
	Disallow
	Sitemap
	CrawlDelay
)

// A Scanner takes a text apart into its lines, and these into records.
type Scanner struct {
	text string
	pos  int // where the next line begins
	row  int // the number of that line

	// The line that NextLine has found.
	Line    int    // its number, from 1
	Content string // without what ends it
	NUL     bool   // a NUL ends it
	start   int    // where it begins in text

	// The record that Next or Split has found on it.
	Kind  Kind
	Key   string
	Value string
	At    int // where Value stands in the text
}

// Scan returns a Scanner of the text.
func (t Text) Scan() Scanner {
	return Scanner{text: t.Text, pos: t.Start, row: 1}
}

// Next finds the next record, and reports whether there is one. Other lines are passed
// over: blank ones, comments, and lines that have neither a colon nor two words.
func (s *Scanner) Next() bool {
	for s.NextLine() {
		if s.Split() {
			return true
		}
	}
	return false
}

// NextLine steps over a line and whatever ends it, and reports whether there is one.
func (s *Scanner) NextLine() bool {
	if s.pos >= len(s.text) {
		return false
	}
	s.start = s.pos
	for s.pos < len(s.text) && !endsLine(s.text[s.pos]) {
		s.pos++
	}
	s.Line, s.Content = s.row, s.text[s.start:s.pos]
	s.NUL = s.pos < len(s.text) && s.text[s.pos] == 0
	s.endLine()
	return true
}

// Row returns the number of the line that NextLine would find next.
func (s *Scanner) Row() int { return s.row }

// endLine steps over the end of a line: CR, LF or both (RFC 9309, 2.2). NUL is
// one too, but no editor counts it, and line numbers are for people.
func (s *Scanner) endLine() {
	if s.pos == len(s.text) {
		return
	}
	c := s.text[s.pos]
	s.pos++
	if c == 0 {
		return
	}
	s.row++
	if c == '\r' && s.pos < len(s.text) && s.text[s.pos] == '\n' {
		s.pos++
	}
}

// Split takes the line apart, and reports whether it is a record.
func (s *Scanner) Split() bool {
	line := s.Content
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	before, after, ok := strings.Cut(line, ":")
	if !ok {
		return s.splitWords(line)
	}
	s.setKey(Trim(before))
	rest := TrimLeft(after)
	s.At = s.start + len(line) - len(rest)
	s.Value = TrimRight(rest)
	return s.Key != ""
}

// splitWords takes a line apart that lacks its colon. It counts only if it has
// exactly two words: anything else is more likely prose.
func (s *Scanner) splitWords(line string) bool {
	rest := TrimLeft(line)
	i := 0
	for i < len(rest) && !IsSpace(rest[i]) {
		i++
	}
	s.setKey(rest[:i])
	rest = TrimLeft(rest[i:])
	s.At = s.start + len(line) - len(rest)
	s.Value = TrimRight(rest)
	if s.Value == "" {
		return false
	}
	for i := range len(s.Value) {
		if IsSpace(s.Value[i]) {
			return false
		}
	}
	return true
}

func (s *Scanner) setKey(key string) { s.Key, s.Kind = key, KindOf(key) }

// KindOf reads a key in any case, spelt right or in one of the ways that the
// web's authors misspell it (RFC 9309, 2.2.4, asks parsers to be lenient).
func KindOf(key string) Kind {
	var buf [len("crawl-delay")]byte
	if len(key) > len(buf) {
		return Unknown
	}
	for i := range len(key) {
		buf[i] = lower(key[i])
	}
	switch string(buf[:len(key)]) {
	case "user-agent", "useragent", "user agent":
		return UserAgent
	case "allow":
		return Allow
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return Disallow
	case "sitemap", "site-map":
		return Sitemap
	case "crawl-delay", "crawldelay":
		return CrawlDelay
	}
	return Unknown
}

// Lower maps A-Z only. Unicode's folding would find a K in the Kelvin sign.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// IsSpace reports whether c is white space within a line. The RFC knows space and
// tab; vertical tab and form feed at the edge of a value mean nothing else.
func IsSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\v' || c == '\f'
}

// TrimLeft returns s without white space at its beginning.
func TrimLeft(s string) string {
	for s != "" && IsSpace(s[0]) {
		s = s[1:]
	}
	return s
}

// TrimRight returns s without white space at its end.
func TrimRight(s string) string {
	for s != "" && IsSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// Trim returns s without white space at both ends.
func Trim(s string) string { return TrimLeft(TrimRight(s)) }
