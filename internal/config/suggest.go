package config

import (
	"reflect"
	"slices"
	"strings"
)

// unknown reports a key that struct type t does not have, with the key that was probably
// meant. Others are all keys of the mapping.
func (d *decoder) unknown(e entry, others []entry, path string, tag reflect.StructTag, t reflect.Type) {
	what := display(join(path, cut(e.key)))
	known := keys(t)
	if near := nearest(e.key, known); near != "" {
		if slices.ContainsFunc(others, func(o entry) bool { return o.key == near }) {
			d.add(e.line, "unknown key %s: %s is there already, remove one of them", what, near)
			return
		}
		// No second message if that key is required.
		d.bad[join(path, near)] = true
		d.add(e.line, "unknown key %s: did you mean %s?", what, near)
		return
	}
	if section, key := elsewhere(e.key, reflect.TypeFor[Config](), ""); key != "" {
		place := "at the top level"
		if section != "" {
			place = "under " + section
		}
		d.add(e.line, "unknown key %s: did you mean %s, %s?", what, key, place)
		return
	}
	if isSecret(tag) {
		d.add(e.line, "unknown key in %s: expected %s", display(path), strings.Join(known, ", "))
		return
	}
	d.add(e.line, "unknown key %s: expected one of %s", what, strings.Join(known, ", "))
}

func keys(t reflect.Type) []string {
	var list []string
	for f := range t.Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			list = append(list, key)
		}
	}
	return list
}

// elsewhere finds a key of this name in t, which stands at path, or in its sections. The
// name may include the section, as in log-level.
func elsewhere(key string, t reflect.Type, path string) (section, found string) {
	for f := range t.Fields() {
		name := f.Tag.Get("yaml")
		if name == "" {
			continue
		}
		if name == key || plain(join(path, name)) == plain(key) {
			return path, name
		}
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !isScalar(inner) {
			if section, found := elsewhere(key, inner, join(path, name)); found != "" {
				return section, found
			}
		}
	}
	return "", ""
}

// nearest returns the word of known that key is probably a misspelling of.
func nearest(key string, known []string) string {
	if len(key) > 40 {
		return "" // no key is as long, and distance takes quadratic time
	}
	bare := plain(key)
	best, least := "", 3
	for _, k := range known {
		// At most a third of the letters may differ: short keys would resemble any word.
		d := distance(bare, plain(k))
		if d < least && d*3 <= max(len(bare), 3) {
			best, least = k, d
		}
	}
	return best
}

// plain returns key without the differences between naming styles.
func plain(key string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(key))
}

// distance returns the number of edits (insert, remove, change, swap neighbours) between
// a and b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = slices.Min([]int{change, rows[i-1][j] + 1, rows[i][j-1] + 1})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
