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
func Effective(v any) ([]byte, error) {
	text, err := yaml.Marshal(effective(reflect.ValueOf(v).Elem(), ""))
	if err != nil {
		return nil, fmt.Errorf("the configuration in force can't be written: %w", err)
	}
	return text, nil
}

// effective returns a value as YAML.
func effective(v reflect.Value, tag reflect.StructTag) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	text := fmt.Sprint(v)
	switch x := v.Interface().(type) {
	case time.Duration:
		text = field.Duration(x)
	case time.Time:
		text = x.Format(time.RFC3339Nano)
	case slog.Level:
		text = strings.ToLower(x.String())
	case *url.URL:
		if text = ""; x != nil {
			u := *x
			if u.User != nil {
				u.User = url.User(hidden) // the user name may be an API key
			}
			text = u.String()
		}
	default:
		switch {
		case len(fields(v.Type())) > 0:
			n.Kind = yaml.MappingNode
			for _, f := range fields(v.Type()) {
				if value := v.FieldByIndex(f.Index); f.Type != reflect.TypeFor[time.Time]() || !value.IsZero() { // the zero time has no notation
					n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Name}, effective(value, f.Tag))
				}
			}
			return n
		case v.Kind() == reflect.Slice:
			n.Kind = yaml.SequenceNode
			for i := range v.Len() {
				n.Content = append(n.Content, effective(v.Index(i), tag))
			}
			return n
		case tag.Get("size") != "":
			text = field.Size(v.Int())
		case v.Kind() == reflect.Bool || v.Kind() == reflect.Int:
			n.Value = text
			return n
		case tag.Get("hidden") != "" && text != "":
			text = hidden
		}
	}
	n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
	n.Value = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${")
	return n
}

// Restrain gives the keys that take effect at start only the values that they have in
// old, the configuration of the running process. It returns the names of these keys
// where next had other values, in order. Both are pointers to structs of one type.
func Restrain(next, old any) (kept []string) {
	return restrain("", reflect.ValueOf(next).Elem(), reflect.ValueOf(old).Elem())
}

func restrain(path string, section, old reflect.Value) (kept []string) {
	for _, f := range fields(section.Type()) {
		v, was := section.FieldByIndex(f.Index), old.FieldByIndex(f.Index)
		kept = append(kept, restrain(field.Join(path, f.Name), v, was)...)
		if f.Tag.Get("restart") != "" && !reflect.DeepEqual(v.Interface(), was.Interface()) {
			v.Set(was)
			kept = append(kept, field.Join(path, f.Name))
		}
	}
	return kept
}
