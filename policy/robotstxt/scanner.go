package robotstxt

import (
	"slices"
	"strings"
)

// A scanner takes a text apart into its lines, and these into fields.
type scanner struct {
	text string
	pos  int // where the next line begins
	row  int // the number of that line

	// The field that Next has found.
	Line  int    // the number of its line, from 1
	Name  string // a constant such as UserAgent if Known, else the key as written
	Known bool
	Value string
	At    int // where Value stands in the text
}

// scan returns a scanner of the text.
func (t wholeLines) scan() scanner {
	return scanner{text: t.Text, pos: t.Start, row: 1}
}

// Next finds the next field, and reports whether there is one. Other lines are passed
// over: blank ones, comments, and lines that have neither a colon nor two words.
//
// CR, LF or both end a line (RFC 9309, section 2.2). NUL does too, but editors do not count
// it, and line numbers are for people.
func (s *scanner) Next() bool {
	for s.pos < len(s.text) {
		start := s.pos
		for s.pos < len(s.text) && !endsLine(s.text[s.pos]) {
			s.pos++
		}
		s.Line = s.row
		field := s.split(start, s.text[start:s.pos])
		end := s.text[s.pos:min(s.pos+2, len(s.text))]
		if end != "" && end[0] != 0 {
			s.row++
		}
		s.pos++
		if end == "\r\n" {
			s.pos++
		}
		if field {
			return true
		}
	}
	return false
}

// split takes the line that begins at start apart, and reports whether it is a field.
func (s *scanner) split(start int, line string) bool {
	content, _, _ := strings.Cut(line, "#")
	key, value, colon := strings.Cut(content, ":")
	if !colon {
		// Such a line counts only if it has exactly two words: other lines are more
		// likely prose.
		words := strings.TrimLeft(content, space)
		i := max(0, strings.IndexAny(words, space))
		key, value = words[:i], words[i:]
	}
	value = strings.TrimLeft(value, space)
	s.At = start + len(content) - len(value)
	s.Value = strings.TrimRight(value, space)
	key = strings.Trim(key, space)
	s.Name, s.Known = nameOf(key)
	return key != "" && (colon || s.Value != "" && !strings.ContainsAny(s.Value, space))
}

// space is the white space within a line. RFC 9309 has space and tab; vertical tab and
// form feed at the edge of a value mean nothing else.
const space = " \t\v\f"

// The names of the fields that crawlers obey.
const (
	userAgent  = "User-agent"
	allow      = "Allow"
	disallow   = "Disallow"
	sitemap    = "Sitemap"
	crawlDelay = "Crawl-delay"
)

// keptNames are the names of the fields that state something about crawlers or their use of the content: robotstxt keeps all
// of them. A further one needs a row here.
var keptNames = [...]string{crawlDelay, "Content-Usage", "Content-Signal", "License"}

// isKept reports whether a name, in any case, is one of keptNames.
func isKept(name string) bool {
	return slices.ContainsFunc(keptNames[:], func(kept string) bool { return strings.EqualFold(kept, name) })
}

// nameOf returns the name that a key stands for, in any case, spelt right or in one of the
// ways in which authors misspell it (RFC 9309, section 2.2.4, asks parsers to be lenient).
// A key that is not known is its own name.
func nameOf(key string) (name string, known bool) {
	var buf [len(crawlDelay)]byte // "disallow" misspelt is no longer
	if len(key) > len(buf) {
		return key, false
	}
	for i := range len(key) {
		buf[i] = lower(key[i])
	}
	switch string(buf[:len(key)]) {
	case "user-agent", "useragent", "user agent":
		return userAgent, true
	case "allow":
		return allow, true
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return disallow, true
	case "sitemap", "site-map":
		return sitemap, true
	case "crawl-delay", "crawldelay":
		return crawlDelay, true
	}
	return key, false
}

// lower maps A to Z only. Unicode's folding would find a k in the Kelvin sign.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
