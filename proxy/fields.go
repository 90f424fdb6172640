package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Fields are header fields in the making, as RFC 9651 writes them. Every response has
// four of them and more, so they are appended to one buffer instead of built as values
// of package httpsfv: that would be a quarter of all that a request allocates.
//
// A value that RFC 9651 does not admit, which would be a mistake of ours, leaves out
// its field.
type fields struct {
	buf     []byte
	made    []field
	invalid bool // the field being made
}

var fieldBuffers = sync.Pool{New: func() any { return &fields{buf: make([]byte, 0, 1<<10), made: make([]field, 0, 8)} }}

// maxPooledFields bounds the memory of a buffer that is kept for others, in bytes: tags
// and what others say of themselves can be long.
const maxPooledFields = 16 << 10

func newFields() *fields { return fieldBuffers.Get().(*fields) }

// free gives the buffer back, for which f must have no field that is not ended.
func (f *fields) free() {
	if f.clear() {
		fieldBuffers.Put(f)
	}
}

// clear empties the buffer, and reports whether it is worth keeping.
func (f *fields) clear() bool {
	f.buf, f.made, f.invalid = f.buf[:0], f.made[:0], false
	return cap(f.buf) <= maxPooledFields
}

// A field ends where it says in the buffer, and begins where the one before it ends.
type field struct {
	name string
	end  int
	ok   bool
}

// end completes the field that has been appended since the last.
func (f *fields) end(name string) {
	f.made = append(f.made, field{name, len(f.buf), !f.invalid})
	f.invalid = false
}

// addTo puts the fields into a header, in place of those of their names.
func (f *fields) addTo(h http.Header) {
	text := string(f.buf)
	values := make([]string, len(f.made))
	start := 0
	for i, m := range f.made {
		values[i] = text[start:m.end]
		start = m.end
		if m.ok {
			h[m.name] = values[i : i+1 : i+1]
		}
	}
}

// param begins a parameter, of which the value has to follow.
func (f *fields) param(name string) {
	f.buf = append(append(append(f.buf, ';'), name...), '=')
}

// flag appends a parameter that is true.
func (f *fields) flag(name string) {
	f.buf = append(append(f.buf, ';'), name...)
}

// next begins another member of a list, but for the first.
func (f *fields) next(first bool) {
	if !first {
		f.buf = append(f.buf, ", "...)
	}
}

func (f *fields) token(s string) {
	if !isToken(s) {
		f.invalid = true
	}
	f.buf = append(f.buf, s...)
}

// isToken follows RFC 9651, 3.3.4.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '*'
		if !letter && (i == 0 || !('0' <= c && c <= '9') && !isTokenMark(c)) {
			return false
		}
	}
	return s != ""
}

func isTokenMark(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '+', '-', '.', '^', '_', '`', '|', '~', ':', '/':
		return true
	}
	return false
}

// maxInteger is the largest there is (RFC 9651, 3.3.1).
const maxInteger = 999_999_999_999_999

func (f *fields) integer(n int64) {
	if n < -maxInteger || n > maxInteger {
		f.invalid = true
	}
	f.buf = strconv.AppendInt(f.buf, n, 10)
}

// date is one to the second (RFC 9651, 3.3.7).
func (f *fields) date(t time.Time) {
	f.buf = append(f.buf, '@')
	f.integer(t.Unix())
}

// str appends text that is printable ASCII (RFC 9651, 3.3.3).
func (f *fields) str(s string) {
	escapes := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			f.invalid = true
		case c == '"' || c == '\\':
			escapes++
		}
	}
	f.buf = append(f.buf, '"')
	for ; escapes > 0; escapes-- {
		i := strings.IndexAny(s, `"\`)
		f.buf = append(append(f.buf, s[:i]...), '\\', s[i])
		s = s[i+1:]
	}
	f.buf = append(append(f.buf, s...), '"')
}

// plain appends text that is known to be printable ASCII without quotes.
func (f *fields) plain(s string) {
	f.buf = append(append(append(f.buf, '"'), s...), '"')
}

// textParam appends a parameter of untrusted text unless it is empty: a String where
// it is printable ASCII, else a Display String (RFC 9651, 3.3.8).
func (f *fields) textParam(name, s string) {
	if s == "" {
		return
	}
	f.param(name)
	s = cutText(s)
	if isPrintable(s) {
		f.str(s)
		return
	}
	const hex = "0123456789abcdef"
	f.buf = append(f.buf, `%"`...)
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' || c == '"' {
			f.buf = append(f.buf, '%', hex[c>>4], hex[c&15])
			continue
		}
		f.buf = append(f.buf, s[i])
	}
	f.buf = append(f.buf, '"')
}

// maxRuleText bounds what of an untrusted line goes into a header, in bytes.
const maxRuleText = 256

// cutText cuts text to what a header should hold.
func cutText(s string) string {
	if len(s) <= maxRuleText {
		return s
	}
	s = s[:maxRuleText]
	for i := 0; i < utf8.UTFMax && !utf8.ValidString(s); i++ { // cut inside a character
		s = s[:len(s)-1]
	}
	return s
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
