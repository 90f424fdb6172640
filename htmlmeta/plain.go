package htmlmeta

import "bytes"

// plain returns the named metas of a page that consists of metas only, if their
// attributes mean what they say: a character reference, a carriage return or a
// NUL stands for something else (WHATWG HTML, sections 13.2.3.5, 13.2.5.36 and
// 13.2.5.73). If ok is false there is one of these, or something else than metas.
func plain(reduced []byte) (metas []Meta, ok bool) {
	if bytes.ContainsAny(reduced, "&\r\x00") {
		return nil, false
	}
	for len(reduced) > 0 {
		if reduced, ok = bytes.CutPrefix(reduced, []byte("<meta")); !ok {
			return nil, false
		}
		var m Meta
		var hasName, hasContent bool // the first of a name counts
		for {
			a, rest, ok := nextAttribute(reduced)
			if !ok {
				return nil, false
			}
			reduced = rest
			if a.name == nil {
				break
			}
			switch {
			case !hasName && isFold(a.name, "name"):
				m.Name, hasName = string(bytes.TrimSpace(a.value)), true
			case !hasContent && isFold(a.name, "content"):
				m.Content, hasContent = string(a.value), true
			}
		}
		if m.Name != "" && m.Content != "" {
			metas = append(metas, m)
		}
	}
	return metas, true
}

type namedValue struct{ name, value []byte }

// nextAttribute returns the first attribute of what follows a tag's name, or none
// at the tag's end, and what follows it. If ok is false the tag has no end.
func nextAttribute(b []byte) (a namedValue, rest []byte, ok bool) {
	i := 0
	skip := func(while func(c byte) bool) {
		for i < len(b) && while(b[i]) {
			i++
		}
	}
	skip(func(c byte) bool { return isSpace(c) || c == '/' })
	if i == len(b) || b[i] == '>' {
		return a, b[min(i+1, len(b)):], i < len(b)
	}
	begin := i
	i++ // also a "=", which begins a name that isn't there
	skip(func(c byte) bool { return !endsTagName(c) && c != '=' })
	a.name = b[begin:i]
	skip(isSpace)
	if i == len(b) || b[i] != '=' {
		return a, b[i:], i < len(b)
	}
	i++
	skip(isSpace)
	if i == len(b) {
		return a, nil, false
	}
	if quote := b[i]; quote == '"' || quote == '\'' {
		var after []byte
		a.value, after, ok = bytes.Cut(b[i+1:], b[i:i+1])
		return a, after, ok
	}
	begin = i
	skip(func(c byte) bool { return !isSpace(c) && c != '>' })
	a.value = b[begin:i]
	return a, b[i:], i < len(b)
}

// isFold reports whether b is a word of lower-case ASCII letters in any case.
func isFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}
