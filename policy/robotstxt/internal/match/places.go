package match

import (
	"math/bits"
	"strings"
)

// A placeTable knows where every one, two and three octets in a row of a text first occur,
// and so finds most strings, or that the text does not have them, without reading the text.
//
// It is a hash table of places without the keys: where two of them have one hash, it has the
// first place of both. So a place in it may be too early, but never too late. The hash has no
// random seed, so that a decision takes the same number of steps everywhere.
type placeTable struct {
	text   string
	places []int32 // one more than the place; 0: none
}

// tableSteps is what newPlaceTable costs for each octet, in steps of File.Decide.
const tableSteps = 16

// maxGram is the most octets in a row that a placeTable knows.
const maxGram = 3

func newPlaceTable(text string) *placeTable {
	t := &placeTable{text, make([]int32, 4<<bits.Len(uint(len(text))))}
	for i := range len(text) {
		for size := 1; size <= maxGram && i+size <= len(text); size++ {
			if place := t.place(text[i : i+size]); *place == 0 {
				*place = int32(i + 1)
			}
		}
	}
	return t
}

// place returns the entry for a gram of at most maxGram octets.
func (t *placeTable) place(gram string) *int32 {
	hash := uint64(len(gram))
	for i := range len(gram) {
		hash = (hash ^ uint64(gram[i])) * 0x9E3779B97F4A7C15 // as Knuth suggests
		hash ^= hash >> 32
	}
	return &t.places[hash&uint64(len(t.places)-1)]
}

// index is strings.Index(text[from:], s), and returns how many steps it took.
func (t *placeTable) index(from int, s string) (at, steps int) {
	first := from
	for i := range len(s) {
		for size := min(len(s)-i, maxGram); size > 0; size-- {
			place := int(*t.place(s[i : i+size])) - 1
			if place < 0 {
				return -1, i + 1
			}
			first = max(first, place-i)
		}
	}
	at = strings.Index(t.text[first:], s)
	if at < 0 {
		return at, len(s) + len(t.text) - first
	}
	return first - from + at, len(s) + at
}
