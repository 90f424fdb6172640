package escape

import (
	"bytes"
	"encoding/json"
)

// AppendJSON appends a string as a value of JSON, escaped as [JSON] does.
func AppendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			return append(b, escaped(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// escaped is for the few strings that need it.
func escaped(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // any string can be encoded
	return JSON(bytes.TrimSuffix(out.Bytes(), []byte{'\n'}))
}

// plain are the bytes that stand for themselves.
var plain = func() (set [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()
