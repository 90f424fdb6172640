package robotstag

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A kind is the effect of a word of the vocabulary.
type kind uint8

const (
	notAWord   kind = iota
	flag            // restricts by being there
	permissive      // has no effect: rules bind by union and cannot be lifted
	number          // max-snippet: a whole number, -1 is no limit
	size            // max-image-preview: none, standard or large
	date            // unavailable_after
)

type entry struct {
	kind kind
	name string // of "none": noindex nofollow
}

// vocabulary is every word that is a rule. A word in it is never a product token, which
// distinguishes "max-snippet: 5" from "examplebot: noindex".
var vocabulary = func() map[string]entry {
	m := map[string]entry{}
	for kind, words := range map[kind]string{
		flag: `noindex nofollow noarchive nocache nosnippet noimageindex notranslate indexifembedded
			noodp noydir noyaca nositelinkssearchbox nopagereadaloud noai noimageai noml`,
		permissive: "all index follow archive snippet cache imageindex translate odp",
		number:     "max-snippet max-video-preview",
		size:       "max-image-preview",
		date:       "unavailable_after",
	} {
		for word := range strings.FieldsSeq(words) {
			m[word] = entry{kind, word}
		}
	}
	m["none"] = entry{flag, "noindex nofollow"}
	return m
}()

// lookup finds a word of the vocabulary, in any case.
func lookup(word string) entry { return vocabulary[strings.ToLower(word)] }

// maxNumber is the greatest Integer of a structured field (RFC 9651, section
// 3.3.1). A greater limit has the same effect.
const maxNumber = 999_999_999_999_999

// readNumber reads a whole number; -1 is the only negative number with a meaning.
func readNumber(s string) (value string, ok bool) {
	if s == "-1" {
		return s, true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return strconv.FormatUint(min(n, maxNumber), 10), err == nil || errors.Is(err, strconv.ErrRange)
}

var sizes = []string{"none", "standard", "large"}

// stricter reports whether a restricts more than b, a rule of the same name.
func stricter(a, b Rule) bool {
	switch lookup(a.Name).kind {
	case number:
		x, _ := strconv.ParseInt(a.Value, 10, 64)
		y, _ := strconv.ParseInt(b.Value, 10, 64)
		return uint64(x) < uint64(y) // -1, no limit, is above all of them
	case size:
		return slices.Index(sizes, a.Value) < slices.Index(sizes, b.Value)
	case date:
		return a.Time < b.Time
	}
	return false
}
