package header

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"
)

// A Field is a structured field (RFC 9651) that is being written. The zero Field is empty, too. Start with [NewField],
// append to the field, and call [Field.Set] to put it into a header:
//
//	f := header.NewField()
//	f.Token("allow")
//	f.Param("line")
//	f.Integer(4)
//	f.Set(h, "Robots-Gate-Decision") // allow;line=4
//
// Every response has four such fields or more. To write them, package httpsfv builds a tree
// of values for each: that takes some 4 µs more, a twentieth of what a small request takes. So
// httpsfv writes only the values that are rare.
type Field struct {
	buf     []byte
	invalid bool
	values  []string // of the fields that Set has made, in one allocation
}

// NewField returns an empty Field with room for most fields, in one allocation.
func NewField() *Field {
	f := &struct {
		Field
		buf    [512]byte
		values [8]string // one for each of the gate's annotations
	}{}
	f.Field.buf, f.Field.values = f.buf[:0], f.values[:0]
	return &f.Field
}

// Set puts the field into a header in place of another of that name, and empties f. A field
// that RFC 9651 does not admit, which is a mistake of the caller, is left out.
func (f *Field) Set(h http.Header, name string) {
	if !f.invalid {
		f.values = append(f.values, string(f.buf))
		n := len(f.values)
		h[name] = f.values[n-1 : n : n]
	}
	f.Reset()
}

// Reset empties f.
func (f *Field) Reset() { f.buf, f.invalid = f.buf[:0], false }

// Len returns the length of what has been appended, in bytes.
func (f *Field) Len() int { return len(f.buf) }

// Member begins another member of a list.
func (f *Field) Member() {
	if len(f.buf) > 0 {
		f.buf = append(f.buf, ", "...)
	}
}

// Param begins a parameter. Its value must follow.
func (f *Field) Param(name string) {
	f.Flag(name)
	f.buf = append(f.buf, '=')
}

// Flag appends a parameter that is true.
func (f *Field) Flag(name string) {
	f.buf = append(append(f.buf, ';'), name...)
}

// False appends the Boolean false.
func (f *Field) False() { f.buf = append(f.buf, "?0"...) }

// Token appends a Token (RFC 9651, section 3.3.4). If s is not one, Set leaves the field out.
func (f *Field) Token(s string) {
	if !IsToken(s) {
		f.invalid = true
	}
	f.buf = append(f.buf, s...)
}

// IsToken reports whether s is a Token (RFC 9651, section 3.3.4).
func IsToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '*'
		if !letter && (i == 0 || !('0' <= c && c <= '9') && strings.IndexByte("!#$%&'+-.^_`|~:/", c) < 0) {
			return false
		}
	}
	return s != ""
}

// Integer appends an Integer of at most 15 digits (RFC 9651, section 3.3.1).
func (f *Field) Integer(n int64) {
	const largest = 999_999_999_999_999
	if n < -largest || n > largest {
		f.invalid = true
	}
	f.buf = strconv.AppendInt(f.buf, n, 10)
}

// Decimal appends a Decimal with at most 12 digits before the point, rounded to three
// behind it (RFC 9651, section 4.1.5).
func (f *Field) Decimal(d float64) {
	if math.IsNaN(d) { // httpsfv would write it
		f.invalid = true
		return
	}
	f.item(d)
}

// item appends a value as package httpsfv writes it.
func (f *Field) item(v any) {
	text, err := httpsfv.Marshal(httpsfv.NewItem(v))
	if err != nil {
		f.invalid = true
	}
	f.buf = append(f.buf, text...)
}

// Date appends a Date (RFC 9651, section 3.3.7).
func (f *Field) Date(t time.Time) {
	f.buf = append(f.buf, '@')
	f.Integer(t.Unix())
}

// Quoted appends a String (RFC 9651, section 3.3.3). If s is not printable ASCII, Set leaves the
// field out.
func (f *Field) Quoted(s string) {
	if !IsPrintable(s) || strings.ContainsAny(s, `"\`) {
		f.item(s)
		return
	}
	f.buf = append(append(append(f.buf, '"'), s...), '"')
}

// MaxText is how much of an untrusted text goes into a header, in bytes.
const MaxText = 256

// TextParam appends a parameter of untrusted text unless it is empty: a String if
// it is printable ASCII, otherwise a Display String (RFC 9651, section 3.3.8).
func (f *Field) TextParam(name, s string) {
	if s == "" {
		return
	}
	f.Param(name)
	s = cut(s)
	if IsPrintable(s) {
		f.Quoted(s)
		return
	}
	f.item(httpsfv.DisplayString(strings.ToValidUTF8(s, "\uFFFD")))
}

// cut returns the first MaxText bytes of a text, without part of a character at the end.
func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	s = s[:MaxText]
	for i := 0; i < utf8.UTFMax && !utf8.ValidString(s); i++ {
		s = s[:len(s)-1]
	}
	return s
}

// IsPrintable reports whether s is printable ASCII, as a String must be.
func IsPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
