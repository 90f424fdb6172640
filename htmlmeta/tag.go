package htmlmeta

import "bytes"

// A tag is the state of reading a tag after its name (WHATWG HTML, sections
// 13.2.5.32 to 13.2.5.40).
type tag uint8

const (
	betweenAttributes tag = iota // also before the first
	selfClosing                  // after "/" outside a value
	attributeName
	afterName
	beforeValue
	unquoted
	quoted       // '"'
	singleQuoted // "'"
)

// end takes the next piece of the page. It returns how many bytes of b belong to
// the tag and whether the last of them ends it; then t is selfClosing if the tag
// closes itself.
func (t *tag) end(b []byte) (n int, ended bool) {
	state := *t
	defer func() { *t = state }()
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch state {
		case quoted, singleQuoted:
			quote := byte('"')
			if state == singleQuoted {
				quote = '\''
			}
			end := bytes.IndexByte(b[i:], quote)
			if end < 0 {
				return len(b), false
			}
			i += end
			state = betweenAttributes
			continue
		case unquoted:
			switch {
			case c == '>':
				return i + 1, true
			case isSpace(c):
				state = betweenAttributes
			}
			continue
		case beforeValue:
			switch {
			case c == '>':
				return i + 1, true
			case c == '"':
				state = quoted
			case c == '\'':
				state = singleQuoted
			case !isSpace(c):
				state = unquoted
			}
			continue
		case attributeName, afterName:
			if c == '=' {
				state = beforeValue
				continue
			}
		}
		// A "=" without a name before it is the first byte of a name.
		switch {
		case c == '>':
			return i + 1, true
		case c == '/':
			state = selfClosing
		case !isSpace(c):
			state = attributeName
		case state == attributeName:
			state = afterName
		case state == selfClosing:
			state = betweenAttributes
		}
	}
	return len(b), false
}
