package usage

import (
	"iter"
	"strings"
)

// A link is one of a Link field. Of a parameter that is repeated the first counts (RFC 8288, 3.3).
type link struct {
	target, rel, mediaType string
	anchored               bool // it is about another resource
}

// links reads a line of a Link field (RFC 8288, appendix B.2). It stops at a link that does not begin with
// "<", or has no ">" after its target.
func links(line string) iter.Seq[link] {
	return func(yield func(link) bool) {
		for {
			rest, begins := strings.CutPrefix(strings.TrimLeft(line, space), "<")
			target, rest, ends := strings.Cut(rest, ">")
			if !begins || !ends {
				return
			}
			l := link{target: target}
			line = l.parameters(rest)
			if !yield(l) {
				return
			}
			line, begins = strings.CutPrefix(line, ",")
			if !begins {
				return
			}
		}
	}
}

// parameters reads the parameters that begin s, and returns the rest of s (B.3).
func (l *link) parameters(s string) (rest string) {
	seen := map[string]bool{}
	for {
		s = strings.TrimLeft(s, space)
		if !strings.HasPrefix(s, ";") {
			return s
		}
		var name, value string
		name, value, s = parameter(s[1:])
		name = strings.ToLower(name)
		if name != "rel" && name != "type" && name != "anchor" || seen[name] {
			continue
		}
		seen[name] = true
		switch name {
		case "rel":
			l.rel = value
		case "type":
			l.mediaType = value
		case "anchor":
			l.anchored = true
		}
	}
}

// parameter reads a parameter after its semicolon.
func parameter(s string) (name, value, rest string) {
	s = strings.TrimLeft(s, space)
	name, s = cutAt(s, space+"=;,")
	rest = strings.TrimLeft(s, space)
	if !strings.HasPrefix(rest, "=") {
		return name, "", rest
	}
	rest = strings.TrimLeft(rest[1:], space)
	if strings.HasPrefix(rest, `"`) {
		value, rest = quotedString(rest)
		return name, value, rest
	}
	value, rest = cutAt(rest, ";,")
	return name, strings.TrimRight(value, space), rest
}

// cutAt cuts s at the first of the bytes.
func cutAt(s, bytes string) (before, rest string) {
	i := strings.IndexAny(s, bytes)
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// quotedString reads the quoted string that begins s (B.4). One that does not end goes on to the end.
func quotedString(s string) (value, rest string) {
	var unescaped []byte
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return string(unescaped), s[i+1:]
		case '\\':
			if i++; i == len(s) {
				return string(unescaped), ""
			}
		}
		unescaped = append(unescaped, s[i])
	}
	return string(unescaped), ""
}
