package escape

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\":\"ü/中\"}\n":      "{\"a\":\"ü/中\"}\n",
		"\"\u202e\u0085\u009b\"": `"\u202e\u0085\u009b"`,
		"\"\x7f\U000e0001\"":     `"\u007f\udb40\udc01"`,
	} {
		if got := string(JSON([]byte(in))); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// FuzzAppendJSON wants what encoding/json and JSON make of a string.
func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{"", "a b~", "<&>", `"\`, "\x1f\x7f\n", "é\u2028\u202e\ufffd", "\xff\xed\xa0\x80", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got, want := string(AppendJSON([]byte("x"), s))+"\n", "x"+string(JSON(line.Bytes())); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	})
}

// TestPlain puts every byte at every place, among others and alone.
func TestPlain(t *testing.T) {
	for _, rest := range []byte{' ', '~', 'a', '!', '#', '[', ']'} {
		for length := range 20 {
			for at := range length {
				for c := range 256 {
					s := bytes.Repeat([]byte{rest}, length)
					s[at] = byte(c)
					if got, want := plain(string(s)), c >= ' ' && c <= '~' && c != '"' && c != '\\'; got != want {
						t.Fatalf("%q: got %t", s, got)
					}
				}
			}
		}
	}
}
