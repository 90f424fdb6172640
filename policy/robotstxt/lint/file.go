package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// whole looks at the file as a whole, and reports whether its lines are worth
// looking at.
func (l *linter) whole(data []byte, limit int) bool {
	f := l.file
	text := f.Text[f.Start:]
	wide := f.Order != nil
	switch {
	case wide:
		l.report(Crawlers, 1, "the file is in UTF-16, in which many crawlers find no rules at all; saved as UTF-8, all of them obey it")
	case f.Start > 0:
		mark := "a byte order mark"
		if f.Start < len("\uFEFF") {
			mark = "a part of " + mark
		}
		l.report(Crawlers, 1, "the file begins with %s, which some crawlers take for a part of the first line; remove it", mark)
		// Another mark, or a part of one, would take its place.
		if text == "" || text[0] < utf8.RuneSelf {
			l.edits = append(l.edits, edit{0, f.Start, ""})
		}
	case strings.HasPrefix(text, "\xFF\xFE"), strings.HasPrefix(text, "\xFE\xFF"):
		l.report(Decisions, 1, "the file begins with the byte order mark of UTF-16, but is not in UTF-16, so the first line is ignored; without the mark it would be read")
	}
	if lines := strings.TrimRight(text, "\r\n"); !wide && strings.Count(lines, "\x00") > len(lines)/3 {
		l.report(Decisions, 1, "the file looks like UTF-16 without a byte order mark, in which crawlers find no rules, so they may fetch everything; saved as UTF-8, it would be obeyed")
		return false
	}
	if markup.MatchString(text) {
		l.html = true
		l.report(Decisions, 1, "this begins as an HTML page does, of which crawlers obey only lines that look like rules; put a plain text file in its place")
		return strings.Contains(strings.ToLower(text), "user-agent")
	}
	return true
}

// markup matches a text that begins with a tag: no robots.txt does.
var markup = regexp.MustCompile(`^[ \t\v\f\r\n\x00]*<[A-Za-z!?]`)

// cut reports where the limit has cut the file, unless only white space is lost.
func (l *linter) cut(data []byte, limit int) {
	if !l.file.Truncated || len(bytes.Trim(data[len(l.file.Body):], " \t\v\f\r\n\x00")) == 0 {
		return
	}
	s := syntax.Decode(data, 0).Scan()
	for s.Pos() < len(l.file.Text) && s.NextLine() {
	}
	s.NextLine() // the first line that is not read
	size := fmt.Sprintf("%d bytes", limit)
	if limit%1024 == 0 {
		size = fmt.Sprintf("%d KiB", limit/1024)
	}
	line := max(s.Line, 1) // half a character of UTF-16 is a file without lines
	l.report(Decisions, line, "the file is longer than %s, and a crawler that reads no more ignores this line and all below; make it shorter", size)
}
