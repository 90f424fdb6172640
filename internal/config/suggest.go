package config

import (
	"reflect"
	"slices"
	"strings"

	"robotsgate/internal/field"
)

// unknown reports a key that struct type t does not have, with the key that was probably
// meant. The keys that it has are decoded already.
func (d *decoder) unknown(key string, line int, path string, tag reflect.StructTag, t reflect.Type) {
	known, what := keys(t), field.Display(field.Join(path, field.Cut(key)))
	near, meant := nearest(key, known), ""
	for _, f := range fields(d.root) {
		if t != f.Type && slices.Contains(keys(f.Type), key) {
			meant = f.Name + "." + key
		}
	}
	advice := "expected one of " + strings.Join(known, ", ")
	switch {
	case near != "" && d.Given(field.Join(path, near)):
		advice = near + " is there already, remove one of them"
	case near != "":
		d.Skip(field.Join(path, near)) // no second message if that key is required
		advice = "did you mean " + near + "?"
	case meant != "":
		advice = "did you mean " + meant + "?"
	case tag.Get("secret") != "":
		what = "in " + field.Display(path)
	}
	d.AddLine(line, "unknown key %s: %s", what, advice)
}

// nearest returns the word of known that word is probably a misspelling of, "" if it resembles none.
func nearest(word string, known []string) string {
	plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
	bare := plain.Replace(strings.ToLower(word))
	for _, k := range known {
		if len(bare) > 2 && strings.HasPrefix(k, word+"_") {
			return k
		}
	}
	// At most a third of the letters may differ: short keys would resemble any word.
	for edits := range min(max(len(bare), 3)/3, 2) + 1 {
		for _, k := range known {
			if within(edits, bare, plain.Replace(strings.ToLower(k))) {
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
