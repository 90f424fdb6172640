package config

import "testing"

func TestClosest(t *testing.T) {
	known := []string{"Allow", "min_delay", "max-delay", "header_timeout"}
	for _, c := range []struct {
		word string
		max  int
		want string
	}{
		{"allow", 0, "Allow"},
		{"Max Delay", 0, "max-delay"},
		{"header.time.out", 0, "header_timeout"},
		{"allw", 0, ""},
		{"allw", 1, "Allow"},
		{"alllow", 1, "Allow"},
		{"alliw", 1, "Allow"},
		{"lalow", 1, "Allow"}, // a swap is one edit
		{"allo_wed", 1, ""},
		{"allo_wed", 2, "Allow"},
		{"ma_delay", 2, "max-delay"}, // one edit, though min_delay, with two, is first
		{"mox_delay", 2, "max-delay"},
		{"", 2, ""},
	} {
		if got := closest(plain(c.word), known, c.max); got != c.want {
			t.Errorf("%q, at most %d edits: got %q, want %q", c.word, c.max, got, c.want)
		}
	}
}
