package config

import "strings"

var plain = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// nearest returns the word of known that word is probably a misspelling of, "" if it resembles none.
func nearest(word string, known []string) string {
	bare := plain.Replace(strings.ToLower(word))
	for _, k := range known {
		if len(bare) > 2 && strings.HasPrefix(k, word+"_") {
			return k
		}
	}
	// At most a third of the letters may differ: short keys would resemble any word.
	for edits := range min(max(len(bare), 3)/3, 2) + 1 {
		for _, k := range known {
			if within(edits, bare, plain.Replace(k)) {
				return k
			}
		}
	}
	return ""
}

// within reports whether some edits at most (insert, remove, change) make a into b.
func within(edits int, a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if edits == 0 || a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	return within(edits-1, a[1:], b) || within(edits-1, a, b[1:]) || within(edits-1, a[1:], b[1:])
}
