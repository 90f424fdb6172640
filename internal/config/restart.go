package config

import (
	"reflect"
	"strings"
)

// Given reports whether the file of c has any key.
func (c *Config) Given() bool { return len(c.source.lines) > 0 }

// Restrain gives the keys that take effect at start only the values that they have in
// old, the configuration of the running process. It returns the names of these keys
// where c had other values, in the order of config.yaml.
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
