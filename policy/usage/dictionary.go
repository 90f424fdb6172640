package usage

import (
	"strings"
	"unicode/utf8"
)

// parseDictionary reads a Dictionary strictly (RFC 9651, 4.2.2), and calls member for each of its
// members in their order, repeated keys included. The token is that of an Item that is a Token,
// without its parameters; "" for an Inner List or an Item of another type. One mistake makes the
// result false, whatever has been passed to member by then.
//
// Values are checked but not kept, so that the time is linear and nothing is allocated.
func parseDictionary(s string, member func(key, token string)) bool {
	p := itemParser{s: strings.TrimLeft(s, " ")}
	if p.ended() {
		return true
	}
	for {
		key, ok := p.key()
		if !ok {
			return false
		}
		token := ""
		if p.take('=') {
			if token, ok = p.itemOrInnerList(); !ok {
				return false
			}
		}
		if !p.parameters() {
			return false
		}
		member(key, token)
		p.skip(space)
		if p.ended() {
			return true
		}
		if !p.take(',') {
			return false
		}
		if p.skip(space); p.ended() {
			return false // a comma at the end
		}
	}
}

// An itemParser reads the parts of structured fields (RFC 9651, 4.2). Its methods return false, or an ok
// that is false, after a mistake.
type itemParser struct {
	s string
	i int
}

func (p *itemParser) ended() bool { return p.i == len(p.s) }

// peek returns the next byte; 0, which is part of no structured field, at the end.
func (p *itemParser) peek() byte {
	if p.ended() {
		return 0
	}
	return p.s[p.i]
}

// next uses a byte, and returns it as peek does.
func (p *itemParser) next() byte {
	c := p.peek()
	if !p.ended() {
		p.i++
	}
	return c
}

// take uses the next byte if it is c.
func (p *itemParser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

func (p *itemParser) skip(bytes string) {
	for !p.ended() && strings.IndexByte(bytes, p.s[p.i]) >= 0 {
		p.i++
	}
}

// while uses the bytes that are in the set, and returns them.
func (p *itemParser) while(in *byteSet) string {
	start := p.i
	for !p.ended() && in[p.s[p.i]] {
		p.i++
	}
	return p.s[start:p.i]
}

type byteSet [256]bool

func setOf(bytes string) *byteSet {
	var set byteSet
	for i := range len(bytes) {
		set[bytes[i]] = true
	}
	return &set
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

var (
	keyStart   = setOf(lower + "*")
	keyBytes   = setOf(lower + digits + "_-.*")
	tokenStart = setOf(upper + lower + "*")
	tokenBytes = setOf(upper + lower + digits + "!#$%&'*+-.^_`|~:/")
	base64     = setOf(upper + lower + digits + "+/")
	lowerHex   = setOf(digits + "abcdef")
	digitBytes = setOf(digits)
)

// key reads a key (4.2.3.3).
func (p *itemParser) key() (key string, ok bool) {
	if !keyStart[p.peek()] {
		return "", false
	}
	return p.while(keyBytes), true
}

// itemOrInnerList reads the value of a member without its parameters (4.2.1.1).
func (p *itemParser) itemOrInnerList() (token string, ok bool) {
	if !p.take('(') {
		return p.bareItem()
	}
	for { // 4.2.1.2
		p.skip(" ")
		if p.take(')') {
			return "", true
		}
		if _, ok := p.bareItem(); !ok || !p.parameters() {
			return "", false
		}
		if c := p.peek(); c != ' ' && c != ')' {
			return "", false
		}
	}
}

// parameters reads the parameters of an Item or Inner List, of which there may be none (4.2.3.2).
func (p *itemParser) parameters() bool {
	for p.take(';') {
		p.skip(" ")
		if _, ok := p.key(); !ok {
			return false
		}
		if p.take('=') {
			if _, ok := p.bareItem(); !ok {
				return false
			}
		}
	}
	return true
}

// bareItem reads an Item without its parameters, and returns it if it is a Token (4.2.3.1).
func (p *itemParser) bareItem() (token string, ok bool) {
	switch c := p.peek(); {
	case tokenStart[c]:
		return p.while(tokenBytes), true
	case c == '"':
		return "", p.str()
	case c == '-' || digitBytes[c]:
		_, ok := p.number()
		return "", ok
	case c == '?':
		p.i++
		return "", p.take('0') || p.take('1')
	case c == '@':
		p.i++
		decimal, ok := p.number()
		return "", ok && !decimal
	case c == ':':
		return "", p.bytes()
	case c == '%':
		return "", p.displayString()
	}
	return "", false
}

// number reads an Integer or a Decimal (4.2.4).
func (p *itemParser) number() (decimal, ok bool) {
	p.take('-')
	whole := len(p.while(digitBytes))
	if !p.take('.') {
		return false, 1 <= whole && whole <= 15
	}
	fraction := len(p.while(digitBytes))
	return true, 1 <= whole && whole <= 12 && 1 <= fraction && fraction <= 3
}

// str reads a String (4.2.5).
func (p *itemParser) str() bool {
	p.i++ // its quote
	for {
		switch c := p.next(); {
		case c == '"':
			return true
		case c == '\\':
			if c := p.next(); c != '"' && c != '\\' {
				return false
			}
		case c < ' ' || c >= 0x7F:
			return false
		}
	}
}

// bytes reads a Byte Sequence (4.2.7), which may lack its padding.
func (p *itemParser) bytes() bool {
	p.i++ // its colon
	content := len(p.while(base64))
	padding := p.i
	for p.take('=') {
	}
	padding = p.i - padding
	return p.take(':') && content%4 != 1 && (padding == 0 || padding == -content&3)
}

// displayString reads a Display String (4.2.10).
func (p *itemParser) displayString() bool {
	p.i++ // its percent sign
	if !p.take('"') {
		return false
	}
	var encoded []byte // the escapes in a row
	for {
		c := p.next()
		if c == '%' {
			high, low := p.next(), p.next()
			if !lowerHex[high] || !lowerHex[low] {
				return false
			}
			encoded = append(encoded, fromHex(high)<<4|fromHex(low))
			continue
		}
		// A character in UTF-8 has no ASCII but itself, so each run of escapes must be valid.
		if c < ' ' || c >= 0x7F || !utf8.Valid(encoded) {
			return false
		}
		if c == '"' {
			return true
		}
		encoded = encoded[:0]
	}
}

func fromHex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'a' + 10
}
