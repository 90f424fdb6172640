package config

import (
	"reflect"
	"strings"
)

// Given reports whether the file that c comes from holds any key.
func (c *Config) Given() bool { return len(c.source.lines) > 0 }

// Restrain makes c what a process that runs by old can go over to: keys that only a
// start reads keep the values they have in old. It returns their names where c has
// others, in the order of the file.
func (c *Config) Restrain(old *Config) (kept []string) {
	return restrain("", reflect.ValueOf(c).Elem(), reflect.ValueOf(old).Elem())
}

func restrain(prefix string, section, old reflect.Value) (kept []string) {
	for f, v := range section.Fields() {
		name := prefix + f.Tag.Get("yaml")
		was := old.FieldByIndex(f.Index)
		switch {
		case !f.IsExported():
		case f.Tag.Get("restart") != "":
			if !reflect.DeepEqual(v.Interface(), was.Interface()) {
				v.Set(was)
				kept = append(kept, name)
			}
		case f.Type.Kind() == reflect.Struct && strings.HasSuffix(f.Type.PkgPath(), "internal/config"):
			kept = append(kept, restrain(name+".", v, was)...)
		}
	}
	return kept
}
