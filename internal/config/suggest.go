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
	known := keys(t)
	near, elsewhere := nearest(key, known), ""
	for section, f := range fields(d.root) {
		if t != f.Type && isSection(f.Type) && slices.Contains(keys(f.Type), key) {
			elsewhere = section + "." + key
		}
	}
	what, advice := display(field.Join(path, field.Cut(key))), "expected one of "+strings.Join(known, ", ")
	switch {
	case near != "" && d.Given(field.Join(path, near)):
		advice = near + " is there already, remove one of them"
	case near != "":
		d.Skip(field.Join(path, near)) // no second message if that key is required
		advice = "did you mean " + near + "?"
	case elsewhere != "":
		advice = "did you mean " + elsewhere + "?"
	case isSecret(tag):
		d.note(line, "unknown key in %s: expected %s", display(path), strings.Join(known, ", "))
		return
	}
	d.note(line, "unknown key %s: %s", what, advice)
}

// nearest returns the word of known that key is probably a misspelling of.
func nearest(key string, known []string) string {
	bare := plain(key)
	for _, k := range known {
		if len(bare) > 2 && strings.HasPrefix(k, key+"_") {
			return k
		}
	}
	// At most a third of the letters may differ: short keys would resemble any word.
	return closest(bare, known, min(max(len(bare), 3)/3, 2))
}

// suggested returns advice about a text that is none of the known values, "" if it resembles none of them.
func suggested(text string, known []string) string {
	value := nearest(field.Cut(text), known)
	if value == "" || '0' <= value[0] && value[0] <= '9' { // numbers resemble each other
		return ""
	}
	return ": did you mean " + value + "?"
}
