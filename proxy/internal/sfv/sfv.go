// Package sfv writes structured fields (RFC 9651).
package sfv

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
type Fields struct {
	buf     []byte
	made    []field
	invalid bool // the field being made
}

var fieldBuffers = sync.Pool{New: func() any { return &Fields{buf: make([]byte, 0, 1<<10), made: make([]field, 0, 8)} }}

// maxPooledFields bounds the memory of a buffer that is kept for others, in bytes: tags
// and what others say of themselves can be long.
const maxPooledFields = 16 << 10

func New() *Fields { return fieldBuffers.Get().(*Fields) }

// Free gives the buffer back, for which f must have no field that is not ended.
func (f *Fields) Free() {
	if f.clear() {
		fieldBuffers.Put(f)
	}
}

// clear empties the buffer, and reports whether it is worth keeping.
func (f *Fields) clear() bool {
	f.buf, f.made, f.invalid = f.buf[:0], f.made[:0], false
	return cap(f.buf) <= maxPooledFields
}

// A field ends where it says in the buffer, and begins where the one before it ends.
type field struct {
	name string
	end  int
	ok   bool
}

// End completes the field that has been appended since the last.
func (f *Fields) End(name string) {
	f.made = append(f.made, field{name, len(f.buf), !f.invalid})
	f.invalid = false
}

// AddTo puts the fields into a header, in place of those of their names.
func (f *Fields) AddTo(h http.Header) {
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

// Param begins a parameter, of which the value has to follow.
func (f *Fields) Param(name string) {
	f.buf = append(append(append(f.buf, ';'), name...), '=')
}

// Flag appends a parameter that is true.
func (f *Fields) Flag(name string) {
	f.buf = append(append(f.buf, ';'), name...)
}

// False appends false.
func (f *Fields) False() { f.buf = append(f.buf, "?0"...) }

// Line appends a list as it is, before another member.
func (f *Fields) Line(list string) { f.buf = append(append(f.buf, list...), ", "...) }

// Next begins another member of a list, but for the first.
func (f *Fields) Next(first bool) {
	if !first {
		f.buf = append(f.buf, ", "...)
	}
}

func (f *Fields) Token(s string) {
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

func (f *Fields) Integer(n int64) {
	if n < -maxInteger || n > maxInteger {
		f.invalid = true
	}
	f.buf = strconv.AppendInt(f.buf, n, 10)
}

// Date is one to the second (RFC 9651, 3.3.7).
func (f *Fields) Date(t time.Time) {
	f.buf = append(f.buf, '@')
	f.Integer(t.Unix())
}

// Str appends text that is printable ASCII (RFC 9651, 3.3.3).
func (f *Fields) Str(s string) {
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

// Plain appends text that is known to be printable ASCII without quotes.
func (f *Fields) Plain(s string) {
	f.buf = append(append(append(f.buf, '"'), s...), '"')
}

// TextParam appends a parameter of untrusted text unless it is empty: a String where
// it is printable ASCII, else a Display String (RFC 9651, 3.3.8).
func (f *Fields) TextParam(name, s string) {
	if s == "" {
		return
	}
	f.Param(name)
	s = Cut(s)
	if isPrintable(s) {
		f.Str(s)
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

// MaxText bounds what of an untrusted line goes into a header, in bytes.
const MaxText = 256

// Cut cuts text to what a header should hold.
func Cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	s = s[:MaxText]
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
