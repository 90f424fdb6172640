package logtext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"Disallow: /ü/中": "Disallow: /ü/中",
		"a\x1b[31mb":     `a\x1b[31mb`,
		"a\nb\rc\td":     `a\nb\rc\td`,
		"a\u202eb":       `a\u202eb`, // right-to-left override
		"a\xffb":         `a\ufffdb`,
		"\ufffd":         `\ufffd`,
		"\u0085\u009b":   `\u0085\u009b`, // C1 controls
		"\u2028\u2029":   `\u2028\u2029`, // separators of lines and paragraphs
		"\u200b\u00ad":   `\u200b\u00ad`, // invisible
		"\u2066\u061c":   `\u2066\u061c`, // bidirectional
		"\ue000\u0378":   `\ue000\u0378`, // private use, unassigned
		"\U000e0041":     `\U000e0041`,   // a tag character
		`\'"`:            `\'"`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestStrip: nothing is left that controls a terminal, is invisible, or changes the direction of a line.
func TestStrip(t *testing.T) {
	for in, want := range map[string]string{
		"Disallow: /ü/中":                         "Disallow: /ü/中",
		"a\x1b[31mb\x00\x7f\u009b":               "a[31mb",
		"a\nb\r\tc\u0085\u2028d\u00a0e":          "a b  c  d e",
		"a\u202e\u2066\u200f\u061c\u200b\ufeffb": "ab",
		"a\xff\U000e0041\ue000b":                 "ab",
	} {
		if got := Strip(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

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

// FuzzJSON asserts that the value of a JSON string does not change, and that no
// character in it is left unprintable, but for U+FFFD.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "a b~", "<&>", `"\`, "\x1f\x7f\n", "é\u2028\u202e\ufffd", "\xff\xed\xa0\x80", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		escaped := JSON(line)
		var got, want string
		if err := json.Unmarshal(escaped, &got); err != nil {
			t.Fatalf("%q: %s: %v", s, escaped, err)
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
		for _, r := range string(escaped) {
			if r != utf8.RuneError && unprintable(r) {
				t.Errorf("%q: %U is left in %s", s, r, escaped)
			}
		}
	})
}

// FuzzCut asserts that a text which is cut keeps its bound in JSON, is a beginning of the text, and stays as it is if it is cut again.
func FuzzCut(f *testing.F) {
	for _, s := range []string{"", strings.Repeat("a", 41), strings.Repeat("é", 30), strings.Repeat("\xff", 9), `\"`, strings.Repeat("\x01\n", 30),
		"\U000e0001\U000e0001\U000e0001\U000e0001", "\u202e\ufffd"} {
		f.Add(s, 40)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 3 + limit&1023
		got := Cut(s, limit)
		inJSON := func(s string) int {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(s); err != nil {
				t.Fatal(err)
			}
			return len(JSON(b.Bytes())) - len("\"\"\n")
		}
		if n := inJSON(got); n > limit {
			t.Errorf("%q: %d bytes in JSON, want %d at most", s, n, limit)
		}
		if got != s && (!strings.HasSuffix(got, "…") || !strings.HasPrefix(s, strings.TrimSuffix(got, "…"))) {
			t.Errorf("%q has become %q", s, got)
		}
		if again := Cut(got, limit); again != got {
			t.Errorf("%q was cut to %q and then to %q", s, got, again)
		}
	})
}
