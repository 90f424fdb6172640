package robotstxt

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// maxText bounds what is read when the caller sets no limit: a rule keeps its position in
// the text in 32 bits, of which a normal form three times as long must not run out.
const maxText = 1<<27 - 1

// wholeLines are what is read of a robots.txt: its whole lines up to a limit.
type wholeLines struct {
	Body      string // the bytes that were read
	Text      string // Body in UTF-8: the same string, unless Body is UTF-16
	Start     int    // where in Text the first line begins: after a byte order mark
	Truncated bool   // data was longer than the limit
}

// decode reads the whole lines among the first limit bytes of data; of all data if limit
// is 0.
func decode(data []byte, limit int) wholeLines {
	if limit <= 0 || limit > maxText {
		limit = maxText
	}
	order := utf16Order(data[:min(len(data), limit)])
	t := wholeLines{Truncated: len(data) > limit}
	if t.Truncated {
		data = cut(data, limit, order)
	}
	t.Body = string(data)
	if order != nil {
		t.Text = decodeWide(data[min(2, len(data)):], order)
		return t
	}
	t.Text = t.Body
	t.Start = bomLen(t.Body)
	return t
}

// cut returns the whole lines among the first limit bytes of data, which is longer.
func cut(data []byte, limit int, order binary.ByteOrder) []byte {
	width := 1
	ends := func(at int) bool { return at+1 <= len(data) && endsLine(data[at]) }
	if order != nil {
		width = 2
		ends = func(at int) bool {
			return at+2 <= len(data) && order.Uint16(data[at:]) < 0x80 && endsLine(byte(order.Uint16(data[at:])))
		}
	}
	n := limit / width * width
	if ends(n) {
		return data[:n] // the last line is whole
	}
	for n > 0 && !ends(n-width) {
		n -= width
	}
	return data[:n]
}

// endsLine reports whether c ends a line. NUL does because Google's parser reads it like
// that, and sites rely on it.
func endsLine(c byte) bool { return c == '\n' || c == '\r' || c == 0 }

// bomLen returns how many bytes of a UTF-8 byte order mark text begins with. Some
// tools leave one that is cut short; no key begins with such a byte.
func bomLen(text string) int {
	const bom = "\xEF\xBB\xBF"
	n := 0
	for n < len(bom) && n < len(text) && text[n] == bom[n] {
		n++
	}
	return n
}

// utf16Order returns the byte order of data if it is UTF-16. RFC 9309,
// section 2.2, requires UTF-8, but some editors write UTF-16. The byte order mark alone
// proves nothing: UTF-16 without a NUL has no ASCII, hence no rule.
func utf16Order(data []byte) binary.ByteOrder {
	switch {
	case bytes.IndexByte(data, 0) < 0:
		return nil
	case bytes.HasPrefix(data, []byte("\xFF\xFE")):
		return binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xFE\xFF")):
		return binary.BigEndian
	}
	return nil
}

// decodeWide turns UTF-16 into UTF-8. Half a character at the end is dropped,
// half a surrogate pair becomes U+FFFD.
func decodeWide(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}
