package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

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
		l.report(1, "the file is in UTF-16, in which many crawlers find no rules at all; save it as UTF-8")
	case f.Start > 0:
		mark := "a byte order mark"
		if f.Start < len("\uFEFF") {
			mark = "a part of " + mark
		}
		l.report(1, "the file begins with %s, which some crawlers take for a part of the first line; save it as UTF-8 without one", mark)
	case strings.HasPrefix(text, "\xFF\xFE"), strings.HasPrefix(text, "\xFE\xFF"):
		l.report(1, "the file begins with the byte order mark of UTF-16, but is not in UTF-16, so the first line is not understood; save it as UTF-8 without one")
	}
	if lines := strings.TrimRight(text, "\r\n"); !wide && strings.Count(lines, "\x00") > len(lines)/3 {
		l.report(1, "the file looks like UTF-16 without a byte order mark, in which crawlers find no rules; save it as UTF-8")
		return false
	}
	if markup.MatchString(text) {
		l.html = true
		l.report(1, "this is an HTML page or the like, in which crawlers find no rules; put a plain text file in its place")
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
	l.report(s.Line, "the file is longer than %s, and a crawler that reads no more ignores this line and all below; make it shorter", size)
}
