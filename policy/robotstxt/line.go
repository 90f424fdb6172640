package robotstxt

import "strings"

// A kind is what a record's key says it is.
type kind uint8

const (
	unknown kind = iota
	userAgent
	allow
	disallow
	sitemap
	crawlDelay
)

// A scanner takes a text apart into its records. Lines that are none are passed
// over: blank ones, comments, and those that have neither a colon nor two words.
type scanner struct {
	text string
	pos  int // where the next line begins
	row  int // the number of that line

	// The record that next has found.
	line  int
	kind  kind
	key   string
	value string
	at    int // where value stands in text
}

func (f *File) scan() scanner {
	return scanner{text: f.text, pos: int(f.start), row: 1}
}

// next finds the next record, and reports whether there is one.
func (s *scanner) next() bool {
	for s.pos < len(s.text) {
		if s.split(s.nextLine()) {
			s.kind = kindOf(s.key)
			return true
		}
	}
	return false
}

// nextLine steps over a line, which is text[start:end], and whatever ends it.
func (s *scanner) nextLine() (start, end int) {
	start = s.pos
	end = start
	for end < len(s.text) && !endsLine(s.text[end]) {
		end++
	}
	s.line = s.row
	s.pos = end
	s.endLine()
	return start, end
}

// endLine steps over the end of a line: CR, LF or both (RFC 9309, 2.2). NUL is
// one too, but no editor counts it, and line numbers are for people.
func (s *scanner) endLine() {
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

// split takes the line text[start:end] apart, and reports whether it is a record.
func (s *scanner) split(start, end int) bool {
	line := s.text[start:end]
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	before, after, ok := strings.Cut(line, ":")
	if !ok {
		return s.splitWords(line, start)
	}
	s.key = trim(before)
	rest := trimLeft(after)
	s.at = start + len(line) - len(rest)
	s.value = trimRight(rest)
	return s.key != ""
}

// splitWords takes a line apart that lacks its colon. It counts only if it has
// exactly two words: anything else is more likely prose.
func (s *scanner) splitWords(line string, start int) bool {
	rest := trimLeft(line)
	i := 0
	for i < len(rest) && !isSpace(rest[i]) {
		i++
	}
	s.key = rest[:i]
	rest = trimLeft(rest[i:])
	s.at = start + len(line) - len(rest)
	s.value = trimRight(rest)
	if s.value == "" {
		return false
	}
	for i := range len(s.value) {
		if isSpace(s.value[i]) {
			return false
		}
	}
	return true
}

// kindOf reads a key in any case, spelt right or in one of the ways that the
// web's authors misspell it (RFC 9309, 2.2.4, asks parsers to be lenient).
func kindOf(key string) kind {
	var buf [len("crawl-delay")]byte
	if len(key) > len(buf) {
		return unknown
	}
	for i := range len(key) {
		buf[i] = lower(key[i])
	}
	switch string(buf[:len(key)]) {
	case "user-agent", "useragent", "user agent":
		return userAgent
	case "allow":
		return allow
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return disallow
	case "sitemap", "site-map":
		return sitemap
	case "crawl-delay", "crawldelay":
		return crawlDelay
	}
	return unknown
}

// lower maps A-Z only. Unicode's folding would find a K in the Kelvin sign.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// isSpace reports whether c is white space within a line. The RFC knows space and
// tab; vertical tab and form feed at the edge of a value mean nothing else.
func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\v' || c == '\f'
}

func trimLeft(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

func trimRight(s string) string {
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func trim(s string) string { return trimLeft(trimRight(s)) }
