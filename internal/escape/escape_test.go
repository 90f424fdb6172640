package escape

import "testing"

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
