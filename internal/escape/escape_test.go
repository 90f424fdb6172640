package escape

import "testing"

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"Disallow: /ü/中": "Disallow: /ü/中",
		"a\x1b[31mb":     "a?[31mb",
		"a\nb\rc\td":     "a?b?c?d",
		"a\u202eb":       "a?b", // right-to-left override
		"a\xffb":         "a?b",
		"\u0085\u009b":   "??", // C1 controls
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
