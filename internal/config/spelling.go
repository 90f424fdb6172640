package config

import "strings"

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// plain returns word without the differences between naming styles.
func plain(word string) string { return separators.Replace(strings.ToLower(word)) }

// closest returns the known word that takes the fewest edits to make of bare, and "" if each takes more than max.
func closest(bare string, known []string, max int) string {
	for edits := range max + 1 {
		for _, k := range known {
			if within(edits, bare, plain(k)) {
				return k
			}
		}
	}
	return ""
}

// within reports whether some edits at most (insert, remove, change, swap neighbours) make
// a into b.
func within(edits int, a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if edits == 0 || a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	swapped := len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0]
	return within(edits-1, a[1:], b) || within(edits-1, a, b[1:]) || within(edits-1, a[1:], b[1:]) ||
		swapped && within(edits-1, a[2:], b[2:])
}
