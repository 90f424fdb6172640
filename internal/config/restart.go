package config

import (
	"reflect"

	"robotsgate/internal/field"
)

// Restrain gives the keys that take effect at start only the values that they have in
// old, the configuration of the running process. It returns the names of these keys
// where next had other values, in order. Both are pointers to structs of one type.
func Restrain(next, old any) (kept []string) {
	return restrain("", reflect.ValueOf(next).Elem(), reflect.ValueOf(old).Elem())
}

func restrain(path string, section, old reflect.Value) (kept []string) {
	for key, f := range fields(section.Type()) {
		v, was := section.FieldByIndex(f.Index), old.FieldByIndex(f.Index)
		switch {
		case isSection(f.Type):
			kept = append(kept, restrain(field.Join(path, key), v, was)...)
		case f.Tag.Get("restart") != "" && !reflect.DeepEqual(v.Interface(), was.Interface()):
			v.Set(was)
			kept = append(kept, field.Join(path, key))
		}
	}
	return kept
}
