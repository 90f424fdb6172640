package lint

import (
	"bytes"
	"fmt"
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
	if !wide && looksWide(text) {
		l.report(1, "the file looks like UTF-16 without a byte order mark, in which crawlers find no rules; save it as UTF-8")
		return false
	}
	if looksLikeMarkup(text) {
		l.html = true
		l.report(1, "this is an HTML page or the like, in which crawlers find no rules; put a plain text file in its place")
	}
	return true
}

// looksWide reports whether so much of text is NUL that it must be UTF-16.
func looksWide(text string) bool {
	text = strings.TrimRight(text, "\r\n")
	return strings.Count(text, "\x00") > len(text)/3
}

// looksLikeMarkup reports whether text begins with a tag: no robots.txt does.
func looksLikeMarkup(text string) bool {
	text = strings.TrimLeft(text, " \t\v\f\r\n\x00")
	if len(text) < 2 || text[0] != '<' {
		return false
	}
	c := text[1] | 0x20
	return 'a' <= c && c <= 'z' || c == '!' || c == '?'
}

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
