package robotstxt

import (
	"regexp"
)

// pageBegin matches how an HTML page begins, with a comment, a document type or a tag, as the MIME Sniffing Standard, 7.1
// recognizes pages.
var pageBegin = regexp.MustCompile(`(?i)^[\s\v\x00]*(<\?xml[^>]*>[\s\v]*)?<(!--|!doctype[\s\v]+html\b|` +
	`(html|head|body|title|meta|link|base|script|style|noscript|iframe|div|main|center|table|font|img|svg|h[1-6]|p|br|a|b)[\s\v/>])`)

// HTML reports whether the file begins as an HTML page does, and has no line of a robots.txt in it: it is often the
// challenge of a firewall.
func (f *File) HTML() bool {
	text := decode([]byte(f.body), 0)
	if !pageBegin.MatchString(text.Text[text.Start:]) {
		return false
	}
	for s := text.scan(); s.Next(); {
		if s.Known {
			return false
		}
	}
	return true
}
