package robotstxt

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unicode/utf16"
)

// TestLimit checks RFC 9309, 2.5: a file is read up to a limit, and a rule that the
// limit cuts in two, which would match too much, is dropped.
func TestLimit(t *testing.T) {
	for _, test := range []struct {
		name      string
		data      string
		limit     int
		body      string
		truncated bool
	}{
		{"no limit", "a: b\nc: d", 0, "a: b\nc: d", false},
		{"below the limit", "a: b\nc: d", 10, "a: b\nc: d", false},
		{"at the limit", "a: b\nc: d", 9, "a: b\nc: d", false},
		{"in a line", "a: b\nc: d", 8, "a: b\n", true},
		{"after a line", "a: b\nc: d", 5, "a: b\n", true},
		{"before the end of a line", "a: b\nc: d", 4, "a: b", true},
		{"between CR and LF", "a: b\r\nc: d", 5, "a: b\r", true},
		{"before CR", "a: b\r\nc: d", 4, "a: b", true},
		{"CR only", "a: b\rc: d", 7, "a: b\r", true},
		{"NUL", "a: b\x00c: d", 7, "a: b\x00", true},
		{"no end of a line at all", "Disallow: /shop/private", 15, "", true},
		{"nothing", "", 1, "", false},
	} {
		f := Parse([]byte(test.data), test.limit)
		if f.Body() != test.body || f.Truncated() != test.truncated {
			t.Errorf("%s: got %q, truncated %v; want %q, %v", test.name, f.Body(), f.Truncated(), test.body, test.truncated)
		}
	}
}

// TestUTF16 checks that the body is kept as it was, that the limit counts its bytes, and
// that half a character and half a surrogate pair are dropped.
func TestUTF16(t *testing.T) {
	const text = "\uFEFFUser-agent: *\r\nDisallow: /ツ\nDisallow: /b\n"
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var data []byte
		for _, u := range utf16.Encode([]rune(text)) {
			data = order.AppendUint16(data, u)
		}
		f := Parse(data, 0)
		if f.Body() != string(data) {
			t.Errorf("%v: body %q, want the bytes parsed", order, f.Body())
		}
		if v := f.Decide("/b"); v.Allowed || v.Rule.Line != 3 || v.Rule.Pattern != "/b" {
			t.Errorf("%v: /b: got %+v", order, v)
		}
		if v := f.Decide("/%E3%83%84"); v.Allowed || v.Rule.Pattern != "/ツ" {
			t.Errorf("%v: /ツ: got %+v", order, v)
		}

		second := bytes.Index(data, order.AppendUint16(nil, '\n')) + 2
		for _, limit := range []int{second, second + 1, second + 7} {
			f := Parse(data, limit)
			if !f.Truncated() || f.Body() != string(data[:second]) {
				t.Errorf("%v: limit %d: got %d bytes, truncated %v; want %d", order, limit, len(f.Body()), f.Truncated(), second)
			}
		}
		if f := Parse(data, second-4); f.Body() != string(data[:second-4]) {
			t.Errorf("%v: limit before the end of a line: got %d bytes, want %d", order, len(f.Body()), second-4)
		}
		if f := Parse(data, 20); f.Body() != "" {
			t.Errorf("%v: limit in the first line: got %q", order, f.Body())
		}

		data = order.AppendUint16(data, 0xD83D) // the first half of a pair
		if f := Parse(append(data, 'x'), 0); f.Decide("/b").Allowed {
			t.Errorf("%v: half a pair at the end: /b is allowed", order)
		}
	}
}

// TestUTF16MarkAlone checks that a byte order mark alone does not make a text UTF-16.
func TestUTF16MarkAlone(t *testing.T) {
	f := Parse([]byte("\xFF\xFE\nUser-agent: *\nDisallow: /a\n"), 0)
	if v := f.Decide("/a"); v.Allowed || v.Rule.Line != 3 {
		t.Errorf("got %+v", v)
	}
}
