package lint

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"robotsgate/internal/spelling"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// names are the names of the fields that crawlers obey or read.
var names = append([]string{syntax.UserAgent, syntax.Allow, syntax.Disallow, syntax.Sitemap}, syntax.Kept[:]...)

// line looks at a line.
func (l *linter) line(s *syntax.Scanner) {
	if s.NUL && l.nulLine != s.Line {
		l.nulLine = s.Line
		l.report(Decisions, s.Line, "the line holds a NUL, which ends it for some crawlers and spoils it for others; without it, all would read one line")
	}
	content, comment, commented := strings.Cut(s.Content, "#")
	if strings.Trim(content, syntax.Space) == "" {
		// A comment between User-agent lines is common; a blank line
		// suggests that the author takes it for the end of a group.
		l.separated = l.separated || !commented
		return
	}
	isField := s.Split()
	switch {
	case isField && !s.Known && syntax.IsKept(s.Key):
		l.separated, l.states = true, true
		l.key(s, content)
		if look := preferences[strings.ToLower(s.Key)]; look != nil {
			look(l, s)
		}
	case isField && s.Known:
		l.key(s, content)
		if commented && s.Value != "" && !syntax.IsSpace(content[len(content)-1]) {
			l.report(Decisions, s.Line, "the # before %s begins a comment, although no space stands before it; %%23 in its place would be a part of the value", quote(comment))
		}
		l.field(s)
	default:
		l.separated = true
		if !l.html {
			l.ignored(s, strings.Trim(content, syntax.Space), isField)
		}
	}
	l.corrected(s.Line)
}

// key corrects what stands before the value of a field.
func (l *linter) key(s *syntax.Scanner, content string) {
	from := s.Start() + len(content) - len(strings.TrimLeft(content, syntax.Space))
	to := from + len(s.Key)
	if s.Known && !strings.EqualFold(s.Key, s.Name) {
		l.correct(s, edit{from, to, s.Name}, "%s is read as %s, but not by every crawler", quote(s.Key), s.Name)
	}
	if !strings.Contains(content, ":") {
		l.correct(s, edit{to, to, ":"}, "the line has no colon, which not every crawler forgives")
	}
}

// field looks at the value of a field with a known key.
func (l *linter) field(s *syntax.Scanner) {
	l.separated = l.separated || s.Name != syntax.UserAgent
	plain := !l.secondField(s) && !l.invisibleValue(s)
	if s.Name == syntax.UserAgent || s.Name == syntax.Allow || s.Name == syntax.Disallow {
		l.licenses = l.licenses[:0] // those above are not at the end
	}
	switch s.Name {
	case syntax.UserAgent:
		l.userAgent(s, plain)
	case syntax.Allow, syntax.Disallow:
		l.rule(s, plain)
	case syntax.Sitemap:
		if plain {
			l.sitemap(s)
		}
	case syntax.CrawlDelay:
		l.crawlDelay(s, plain)
	}
}

// secondField reports a field that stands behind another on its line.
func (l *linter) secondField(s *syntax.Scanner) bool {
	parts := strings.Split(s.Value, ":")
	for i, part := range parts[:len(parts)-1] {
		space := strings.LastIndexAny(part, syntax.Space)
		if space < 0 && i > 0 {
			continue // the colon stands within a word
		}
		word := part[space+1:]
		if _, known := syntax.Name(word); known {
			l.report(Decisions, s.Line, "%s stands behind another record, where it is taken for a part of its value; on a line of its own it would be obeyed", quote(word+":"))
			return true
		}
	}
	return false
}

// invisibleValue reports a character that an editor does not show, but crawlers read.
func (l *linter) invisibleValue(s *syntax.Scanner) bool {
	i := strings.IndexFunc(s.Value, invisible)
	if i < 0 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s.Value[i:])
	l.report(Decisions, s.Line, "the line holds %U, which can't be seen but is taken for a part of the value; without it, the line would mean something else", r)
	return true
}

// invisible reports control characters, white space that separates nothing in a
// robots.txt, and characters without a shape.
func invisible(r rune) bool {
	if r < utf8.RuneSelf {
		return (r < ' ' || r == 0x7F) && !syntax.IsSpace(byte(r))
	}
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf)
}

// foreign holds advice about the keys of other specifications. Each is
// reported once, since a file that has one has many.
var foreign = map[string]string{
	"noindex":         noTag,
	"nofollow":        noTag,
	"noarchive":       noTag,
	"nosnippet":       noTag,
	"x-robots-tag":    noTag,
	"host":            "was read by Yandex alone, which has given it up; redirect to the site's main host instead",
	"clean-param":     "is read by Yandex alone; other crawlers fetch URLs with these parameters, unless a Disallow line denies them",
	"request-rate":    "is ignored by nearly all crawlers; a Crawl-delay would make some more of them wait",
	"visit-time":      "is ignored by nearly all crawlers; a Disallow line would deny what it names at all times",
	"tdm-reservation": noTDM,
	"tdm-policy":      noTDM,
}

const noTDM = "is not read in robots.txt; send it in a response header, put it in a meta element of the page, or serve /.well-known/tdmrep.json"

const noTag = "is no rule of robots.txt and is ignored; send it in an X-Robots-Tag header, or put it in the page's robots meta element"

// intended maps other words to the keys that their authors mean.
var intended = map[string]string{
	"agent": syntax.UserAgent, "user": syntax.UserAgent, "bot": syntax.UserAgent, "robot": syntax.UserAgent, "crawler": syntax.UserAgent,
	"deny": syntax.Disallow, "block": syntax.Disallow, "permit": syntax.Allow, "delay": syntax.CrawlDelay,
}

// ignored reports a line that is not a field, or that has an unknown key.
func (l *linter) ignored(s *syntax.Scanner, content string, isField bool) {
	if !strings.Contains(content, ":") {
		if startsWithKey.MatchString(content) {
			l.report(Decisions, s.Line, "the line has no colon and is ignored; as a record with a colon it would be obeyed")
		} else {
			l.report(Crawlers, s.Line, "the line has no colon and is ignored; begin it with # if it is a comment")
		}
		return
	}
	if !isField {
		l.report(Decisions, s.Line, "the line has no key before its colon and is ignored; with a key such as Disallow it would be obeyed")
		return
	}
	key := strings.ToLower(s.Key)
	if says, ok := foreign[key]; ok {
		if !l.keys[key] {
			l.keys[key] = true
			l.report(Crawlers, s.Line, "%s %s", s.Key, says)
		}
		return
	}
	if right, known := syntax.Name(strings.Join(strings.FieldsFunc(key, invisible), "")); known {
		l.report(Decisions, s.Line, "the key holds a character that can't be seen, so the line is ignored; without it, the line would be read as %s", right)
		return
	}
	word := key[:max(0, strings.IndexAny(key, syntax.Space))]
	if name, known := syntax.Name(word); known {
		l.report(Decisions, s.Line, "no colon stands behind %s, so the line is ignored; with one it would be obeyed", name)
		return
	}
	switch meant := nearest(key); meant {
	case "":
		l.report(Crawlers, s.Line, "%s is no key that crawlers know, so the line is ignored; begin it with # if it is a comment", quote(s.Key))
	case syntax.UserAgent:
		l.report(Decisions, s.Line, "%s is ignored, so the rules below belong to the group above, if any; as User-agent it would begin a group for them", quote(s.Key))
	default:
		l.report(Decisions, s.Line, "%s is ignored; as %s it would be obeyed", quote(s.Key), meant)
	}
}

// startsWithKey matches a line that probably is a field without its colon: what follows the key does
// not look like a sentence.
var startsWithKey = regexp.MustCompile(`(?i)^(?:user[- ]?agent|(?:allow|disallow|sitemap|crawl-delay)[ \t\v\f=;：-]*(?:$|[/*]|https?:|[0-9.]+$))`)

// nearest returns the name of the field that an unknown key is probably meant for; "" if
// it resembles none.
func nearest(key string) string {
	if name, ok := intended[key]; ok {
		return name
	}
	// Hyphens and spaces vary. At most a third of the letters may differ: short keys would
	// resemble any name.
	bare := notLetter.ReplaceAllString(key, "")
	return spelling.Nearest(bare, names, min(len(bare)/3, 2))
}

var notLetter = regexp.MustCompile("[^a-z]+")
