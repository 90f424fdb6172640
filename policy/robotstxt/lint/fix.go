package lint

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// Fix returns a robots.txt with the corrections that change no decision, no delay and no
// preference:
//
//   - a byte order mark is removed;
//   - a key gets the spelling that all crawlers read, and the colon that it lacks;
//   - the pattern of a rule is written in the form in which it is compared (RFC 9309, 2.2.2);
//   - the version behind a product token is removed.
//
// A correction replaces a part of one line. Lines, their order and their ends remain, and so do
// comments and fields that are not known here, since other crawlers may read them.
//
// Fix corrects no file with a NUL, which some crawlers read as the end of a line and others do not,
// and no file that has more than 500 KiB before or after: another length would
// change which lines are read.
func Fix(data []byte) []byte {
	if len(data) > leastLimit || bytes.IndexByte(data, 0) >= 0 {
		return data
	}
	l := check(data, leastLimit)
	var fixed []byte
	at := 0
	for _, e := range l.edits {
		fixed = append(fixed, data[at:e.from]...)
		fixed = append(fixed, e.text...)
		at = e.to
	}
	if fixed = append(fixed, data[at:]...); len(fixed) > leastLimit {
		return data
	}
	return fixed
}

// An edit replaces a part of the text.
type edit struct {
	from, to int
	text     string
}

// A correction is the edits of one line.
type correction struct {
	format     string // of the reason for the first edit
	args       []any
	key, value string // as corrected
}

// correct notes that a part of the line is to be replaced, and why.
func (l *linter) correct(s *syntax.Scanner, e edit, format string, args ...any) *correction {
	l.edits = append(l.edits, e)
	if l.spelling == nil {
		key := s.Key
		if !strings.EqualFold(key, s.Name) {
			key = s.Name
		}
		l.spelling = &correction{format, args, key, s.Value}
	}
	return l.spelling
}

// corrected reports how a line that needs corrections is to be written.
func (l *linter) corrected(line int) {
	c := l.spelling
	if c == nil {
		return
	}
	l.spelling = nil
	right := c.key + ": " + c.value
	if len(right) > maxShown || !utf8.ValidString(right) || strings.ContainsFunc(right, func(r rune) bool { return !strconv.IsPrint(r) }) {
		l.report(Crawlers, line, c.format+"; lint --fix writes it right", c.args...)
		return
	}
	l.report(Crawlers, line, c.format+"; write %s", append(c.args, `"`+right+`"`)...)
}
