package escape

import (
	"bytes"
	"encoding/json"
)

// AppendJSON appends a string as a value of JSON, escaped as [JSON] does.
func AppendJSON(b []byte, s string) []byte {
	if !plain(s) {
		return append(b, escaped(s)...)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain reports whether all of s stands for itself: printable ASCII, but for " and \.
// It looks at eight bytes at once, for what sets a high bit: a byte beyond ASCII has
// one, and what is less than is subtracted, or 0x7f where 1 is added, gets one.
func plain(s string) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if (x|(x-each*' ')|(x+each)|((x^each*'"')-each)|((x^each*'\\')-each))&high != 0 {
			return false
		}
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// escaped is for the few strings that need it.
func escaped(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // any string can be encoded
	return JSON(bytes.TrimSuffix(out.Bytes(), []byte{'\n'}))
}
