// Package spelling finds the word that a misspelt word probably stands for.
package spelling

import "strings"

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// Plain returns word without the differences between naming styles.
func Plain(word string) string { return separators.Replace(strings.ToLower(word)) }

// Nearest returns the known word that takes the fewest edits to make of plain, and "" if each takes more than max.
func Nearest(plain string, known []string, max int) string {
	for edits := range max + 1 {
		for _, k := range known {
			if within(edits, plain, Plain(k)) {
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
