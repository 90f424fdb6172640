package lint

import (
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
		l.report(Decisions, s.Line, "the rule stands before the first User-agent line, so it binds no crawler; below one, it would bind that crawler")
	}
	if plain && s.Value != "" {
		l.pattern(s)
	}
	if s.Value == "" && s.Name == syntax.Allow {
		l.emptyAllow(s)
	}
	if !l.began {
		return
	}
	if l.open {
		for _, lines := range l.joined {
			l.report(Decisions, lines[0], "no rule stands between this line and the User-agent on line %d, so the rules below are for both; with a line \"Disallow:\" in between, this crawler would obey none of them", lines[1])
		}
	}
	section := l.begin()
	switch {
	case s.Value == "":
		section.open = section.open || s.Name == syntax.Disallow
	case s.Value[0] == '/' || s.Value[0] == '*':
		section.rules = append(section.rules, newLintRule(s))
	}
}

// emptyAllow looks at an Allow without a pattern. It is no rule, but ends the User-agent lines.
func (l *linter) emptyAllow(s *syntax.Scanner) {
	if l.open {
		l.report(Crawlers, s.Line, "an Allow without a pattern allows nothing more, but ends the User-agent lines above; without it, these might obey the rules below")
		return
	}
	l.report(Taste, s.Line, "an Allow without a pattern does nothing")
}

// pattern looks at a pattern without regard to other rules.
func (l *linter) pattern(s *syntax.Scanner) {
	p := s.Value
	sign := ""
	if strings.ContainsAny(p, `|^\[+(`) { // which takes less time than regular does
		sign = regular.FindString(p)
	}
	switch {
	case sign != "":
		l.report(Decisions, s.Line, "a pattern is no regular expression: only * and a $ at its end are wildcards, and %s stands for itself", quote(sign))
	case p[0] != '/' && p[0] != '*':
		l.neverMatches(s)
	case !l.doubtful(s):
		l.respelt(s)
		l.wildcards(p, s.Line)
	}
	if path, anchored := strings.CutSuffix(normalForm(p), "$"); path == "/robots.txt" && s.Name == syntax.Disallow {
		if anchored {
			l.report(Crawlers, s.Line, "/robots.txt is always allowed, so the rule does nothing")
		} else {
			l.report(Crawlers, s.Line, "/robots.txt is always allowed, so the rule denies only what is longer, such as /robots.txt.bak")
		}
	}
}

// regular matches what has a meaning in regular expressions, and hardly stands in a URL.
var regular = regexp.MustCompile(`[|^]|\\[.?/+*$-]|\\[dwsDWS](?:[+*{/]|$)|\[[0-9A-Za-z]-[0-9A-Za-z]|\.\+|\(\?`)

// neverMatches looks at a pattern that begins with neither a slash nor a star.
func (l *linter) neverMatches(s *syntax.Scanner) {
	p := s.Value
	effect := "deny"
	if s.Name == syntax.Allow {
		effect = "allow"
	}
	if !strings.Contains(p, "://") && !strings.HasPrefix(strings.ToLower(p[:min(4, len(p))]), "www.") {
		l.report(Decisions, s.Line, "%s begins with neither / nor *, so the rule never matches; with one of them in front it would %s URLs", quote(p), effect)
		return
	}
	what := "URLs"
	if strings.Trim(robotstxt.PathOf(p), "/*$") == "" {
		what = "everything"
	}
	l.report(Decisions, s.Line, "a rule has a path, not a whole URL, so this one never matches; its path alone would %s %s on this site", effect, what)
}

// doubtful reports a pattern that probably matches other URLs than its author meant.
func (l *linter) doubtful(s *syntax.Scanner) bool {
	p := s.Value
	inner := strings.TrimSuffix(p, "$")
	literal, _, _ := strings.Cut(inner, "*")
	path, _, _ := strings.Cut(literal, "?") // what a star stands for may reach into the query
	path = path[:strings.LastIndexByte(path, '/')+1]
	switch i := strings.IndexFunc(inner, unsafe); {
	case path != "" && robotstxt.RemoveDotSegments(path) != path:
		l.report(Decisions, s.Line, "no URL is requested with a . or .. segment, so the rule never matches; without that segment it would")
	case strings.Contains(p, "&amp;"):
		l.report(Decisions, s.Line, "&amp; stands for itself in a robots.txt; with & in its place the rule would match other URLs")
	case strings.Contains(inner, "$"):
		l.report(Decisions, s.Line, "$ is the end of the URL only where it ends the pattern, and the character itself here")
	case strings.ContainsAny(p, syntax.Space):
		l.report(Decisions, s.Line, "a pattern ends with the line, and white space is a part of it, as %%20; on lines of their own, its words would match more URLs")
	case neverValid.MatchString(p):
		l.report(Decisions, s.Line, "a %% without two hex digits behind it matches no valid URL; %%25 in its place would match the character itself")
	case !utf8.ValidString(p):
		l.report(Decisions, s.Line, "the pattern is not in UTF-8, so URLs hardly match it; saved as UTF-8 it would match the characters that are meant")
	case i >= 0:
		l.report(Decisions, s.Line, "%s is no wildcard and matches only itself, percent-encoded in URLs", quote(inner[i:i+1]))
	case malformed.MatchString(inner): // at the end, where it matches what an escape begins with
	default:
		return false
	}
	return true
}

// unsafe reports characters of ASCII that URLs have percent-encoded.
func unsafe(r rune) bool {
	return r < utf8.RuneSelf && match.Encodes(byte(r))
}

// respelt corrects a pattern that is not in normal form.
func (l *linter) respelt(s *syntax.Scanner) {
	p := s.Value
	normal := normalForm(p)
	why := "the hex digits of a percent-encoded character are compared in upper case, but not by every crawler"
	switch {
	case normal == p:
		return
	case strings.ContainsFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }):
		why = "URLs have characters beyond ASCII percent-encoded, and not every crawler does so here"
	case encodedUnreserved.MatchString(p):
		why = "the pattern encodes characters that need no encoding, and not every crawler decodes them"
	}
	l.correct(s, edit{s.At, s.At + len(p), normal}, why).value = normal
}

var (
	// malformed is a percent sign without two hex digits.
	malformed = regexp.MustCompile(`%(?:$|[^0-9A-Fa-f]|[0-9A-Fa-f](?:$|[^0-9A-Fa-f]))`)
	// neverValid is one that neither ends the pattern nor stands before a star.
	neverValid = regexp.MustCompile(`%(?:[^0-9A-Fa-f*]|[0-9A-Fa-f][^0-9A-Fa-f*])`)
	// encodedUnreserved is a percent-encoded byte that the normal form decodes.
	encodedUnreserved = regexp.MustCompile(`(?i)%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])`)
)

// wildcards reports wildcards that match nothing more. To remove them may change which of two
// rules is longer, so that is not advised.
func (l *linter) wildcards(p string, line int) {
	switch {
	case p == "*":
	case strings.HasSuffix(p, "*$"):
		l.report(Taste, line, "*$ at the end of a pattern matches nothing more; but it counts where the longest of several rules decides")
	case strings.HasSuffix(p, "*"):
		l.report(Taste, line, "* at the end of a pattern matches nothing more; but it counts where the longest of several rules decides")
	case strings.Contains(p, "**"):
		l.report(Taste, line, "** matches no more than * does; but it counts where the longest of several rules decides")
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
