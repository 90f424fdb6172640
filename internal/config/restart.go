package config

import (
	"reflect"

	"robotsgate/internal/field"
)

// Given reports whether the file of c has any key.
func (c *Config) Given() bool { return len(c.source.lines) > 0 }

// Has reports whether the file of c has a key, such as log.level.
func (c *Config) Has(key string) bool { return c.source.Given(key) }

// Restrain gives the keys that take effect at start only the values that they have in
// old, the configuration of the running process. It returns the names of these keys
// where c had other values, in the order of config.yaml.
func (c *Config) Restrain(old *Config) (kept []string) {
	return restrain("", reflect.ValueOf(c).Elem(), reflect.ValueOf(old).Elem())
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
