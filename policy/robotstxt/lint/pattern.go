package lint

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/robotstxt/internal/match"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// rule looks at an Allow or Disallow line. If its value is not plain, a finding
// about it has been reported.
func (l *linter) rule(s *syntax.Scanner, plain bool) {
	if !l.began {
		l.report(s.Line, "the rule stands before the first User-agent line, so it binds no crawler; write \"User-agent: *\" above it")
	}
	if plain && s.Value != "" {
		l.pattern(s)
	}
	if s.Value == "" && s.Name == syntax.Allow {
		l.report(s.Line, "an Allow without a pattern does nothing; write \"Allow: /\" if all is meant, or remove it")
	}
	if !l.began {
		return
	}
	section := l.begin()
	switch {
	case s.Value == "":
		section.open = section.open || s.Name == syntax.Disallow
	case s.Value[0] == '/' || s.Value[0] == '*':
		section.rules = append(section.rules, newLintRule(s))
	}
}

// pattern looks at a pattern without regard to other rules.
func (l *linter) pattern(s *syntax.Scanner) {
	p := s.Value
	key := s.Name + ": "
	if p[0] != '/' && p[0] != '*' {
		l.neverMatches(s)
		return
	}
	l.rewritten(s)
	l.wildcards(s)
	if strings.Contains(p, "&amp;") {
		l.report(s.Line, "&amp; stands for itself in a robots.txt; write &")
	}
	path := p
	if i := strings.IndexAny(p, "?*"); i >= 0 {
		path = p[:i] // what a star stands for may reach into the query
	}
	if path = path[:strings.LastIndexByte(path, '/')+1]; path != "" && robotstxt.RemoveDotSegments(path) != path {
		l.report(s.Line, "no URL is requested with a . or .. segment, so the rule never matches; write %s", quote(key+robotstxt.RemoveDotSegments(path)+p[len(path):]))
	}
	if s.Name == syntax.Disallow && strings.TrimSuffix(robotstxt.Normalize(p), "%24") == "/robots.txt" {
		l.report(s.Line, "/robots.txt is always allowed, so the rule does nothing; remove it")
	}
}

// neverMatches looks at a pattern that begins with neither a slash nor a star.
func (l *linter) neverMatches(s *syntax.Scanner) {
	p := s.Value
	key := s.Name + ": "
	if strings.Contains(p, "://") || strings.HasPrefix(strings.ToLower(p[:min(4, len(p))]), "www.") {
		l.report(s.Line, "a rule has a path, not a whole URL, so this one never matches; write %s", quote(key+robotstxt.PathOf(p)))
		return
	}
	bare := strings.Trim(p, "\"'")
	switch {
	case strings.HasPrefix(bare, "/"):
	case strings.HasPrefix(p, "./"):
		bare = p[1:]
	case p[0] == '.' || p[0] == '?' || p[0] == '&':
		bare = "/*" + p
	default:
		bare = "/" + strings.TrimLeft(bare, "^\\/")
	}
	l.report(s.Line, "%s begins with neither / nor *, so the rule never matches; write %s", quote(p), quote(key+bare))
}

// rewritten reports patterns that are not in normal form.
func (l *linter) rewritten(s *syntax.Scanner) {
	p := s.Value
	key := s.Name + ": "
	normal := match.Normal(p)
	inner := strings.TrimSuffix(p, "$")
	if malformed.MatchString(inner) {
		l.report(s.Line, "a %% without two hex digits behind it matches no valid URL; write %%25 for the character itself")
	}
	if strings.Contains(inner, "$") {
		l.report(s.Line, "$ is the end of the URL only where it ends the pattern, and the character itself here; write %s if that is meant", quote(key+normal))
	}
	if i := strings.IndexAny(p, syntax.Space); i >= 0 {
		if next := strings.TrimLeft(p[i:], syntax.Space); next[0] == '/' || next[0] == '*' {
			l.report(s.Line, "a rule has one pattern, so this is read as %s; write a line for each", quote(key+normal))
		} else {
			l.report(s.Line, "the white space is a part of the pattern, read as %s; write that if it is meant", quote(key+normal))
		}
		return
	}
	raw := strings.ContainsFunc(inner, func(r rune) bool { return r >= utf8.RuneSelf })
	escaped := strings.ContainsFunc(inner, func(r rune) bool {
		return r < utf8.RuneSelf && match.Encodes(byte(r)) && r != '$' && r != '*'
	})
	switch {
	case normal == p:
	case raw && !utf8.ValidString(p):
		l.report(s.Line, "the pattern is not in UTF-8, so it is read as %s, which URLs hardly match; save the file as UTF-8", quote(normal))
	case raw:
		l.report(s.Line, "URLs have characters beyond ASCII percent-encoded, and not every crawler does so here; write %s", quote(key+normal))
	case escaped:
		l.report(s.Line, "the pattern has characters that URLs have percent-encoded, and not every crawler does so here; write %s", quote(key+normal))
	case encodedUnreserved.MatchString(inner):
		l.report(s.Line, "the pattern encodes characters that need no encoding, and not every crawler decodes them; write %s", quote(key+normal))
	case strings.ReplaceAll(inner, "$", "%24") != strings.TrimSuffix(normal, "$"):
		l.report(s.Line, "the hex digits of a percent-encoded character are compared in upper case, but not every crawler does so; write %s", quote(key+normal))
	}
}

var (
	// malformed is a percent sign without two hex digits.
	malformed = regexp.MustCompile(`%(?:$|[^0-9A-Fa-f]|[0-9A-Fa-f](?:$|[^0-9A-Fa-f]))`)
	// encodedUnreserved is a percent-encoded byte that the normal form decodes.
	encodedUnreserved = regexp.MustCompile(`(?i)%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])`)
)

// wildcards reports wildcards that match nothing more.
func (l *linter) wildcards(s *syntax.Scanner) {
	p := s.Value
	key := s.Name + ": "
	bare := cmp.Or(withoutTail(p), "/")
	switch {
	case p == "*":
	case strings.HasSuffix(p, "*$"):
		l.report(s.Line, "*$ at the end of a pattern matches nothing more, since a rule matches whatever follows; write %s", quote(key+bare))
	case strings.HasSuffix(p, "*"):
		l.report(s.Line, "* at the end of a pattern matches nothing more, since a rule matches whatever follows; write %s", quote(key+bare))
	case strings.Contains(p, "**"):
		l.report(s.Line, "** matches no more than * does; write %s", quote(key+stars.ReplaceAllString(p, "*")))
	}
}

// withoutTail returns the pattern without wildcards at its end that do nothing.
func withoutTail(p string) string {
	if strings.HasSuffix(p, "*") || strings.HasSuffix(p, "*$") {
		return strings.TrimRight(strings.TrimSuffix(p, "$"), "*")
	}
	return p
}

var stars = regexp.MustCompile(`\*\*+`)
