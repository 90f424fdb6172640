package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
)

// hidden replaces secrets in [Effective].
const hidden = "xxxxx"

// Effective returns the struct that v points to as YAML in one canonical form: every key with the value in
// force, from the file, the environment, the command line or the defaults. Secrets are
// replaced by a mark, so two configurations that differ only in secrets have the same
// form. [Decode] reads it.
func Effective(v any) ([]byte, error) { return yaml.Marshal(effective(reflect.ValueOf(v).Elem(), "")) }

// effective returns a value as maps, lists and scalars.
func effective(v reflect.Value, tag reflect.StructTag) any {
	if _, known := fields(v.Type()); len(known) > 0 {
		section := map[string]any{}
		for key, f := range known {
			section[key] = effective(v.FieldByIndex(f.Index), f.Tag)
		}
		return section
	}
	if v.Kind() == reflect.Slice {
		list := make([]any, v.Len())
		for i := range list {
			list[i] = effective(v.Index(i), tag)
		}
		return list
	}
	text := fmt.Sprint(v)
	switch x := v.Interface().(type) {
	case time.Duration:
		text = field.Duration(x)
	case time.Time:
		text = x.Format(time.RFC3339Nano) // Decode reads the zero time, too
	case slog.Level:
		text = strings.ToLower(text)
	case *url.URL:
		if x == nil {
			return ""
		}
		if x.User != nil { // the user name may be an API key
			text = strings.Replace(text, "//"+x.User.String()+"@", "//"+hidden+"@", 1)
		}
	default:
		switch {
		case tag.Get("size") != "":
			text = field.Size(v.Int())
		case tag.Get("hidden") != "" && text != "":
			text = hidden
		case v.Kind() != reflect.String && v.CanInt() || v.Kind() == reflect.Bool:
			return x
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${")
}

// Restrain gives the keys that take effect at start only the values that they have in
// old, the configuration of the running process. It returns the names of these keys
// where next had other values, in order. Both are pointers to structs of one type.
func Restrain(next, old any) (kept []string) {
	v, was := reflect.ValueOf(next).Elem(), reflect.ValueOf(old).Elem()
	keys, of := fields(v.Type())
	for _, key := range keys {
		f := of[key]
		v, was := v.FieldByIndex(f.Index), was.FieldByIndex(f.Index)
		for _, inner := range Restrain(v.Addr().Interface(), was.Addr().Interface()) {
			kept = append(kept, key+"."+inner)
		}
		if f.Tag.Get("restart") != "" && !reflect.DeepEqual(v.Interface(), was.Interface()) {
			v.Set(was)
			kept = append(kept, key)
		}
	}
	return kept
}
