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
	switch {
	case isSection(v.Type()):
		n := &yaml.Node{Kind: yaml.MappingNode}
		for name, f := range fields(v.Type()) {
			value := v.FieldByIndex(f.Index)
			if f.Type == reflect.TypeFor[time.Time]() && value.IsZero() {
				continue // the zero time has no notation
			}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, effective(value, f.Tag))
		}
		return n
	case v.Kind() == reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, effective(v.Index(i), tag))
		}
		return n
	case v.Kind() == reflect.Bool, v.Type() == reflect.TypeFor[int]() && tag.Get("size") == "":
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
	text := format(v.Interface(), tag)
	if tag.Get("hidden") != "" && text != "" {
		text = hidden
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${")
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
}

// format returns the text that the decoder reads as value.
func format(value any, tag reflect.StructTag) string {
	if tag.Get("size") != "" {
		return field.Size(reflect.ValueOf(value).Int())
	}
	switch v := value.(type) {
	case time.Duration:
		return field.Duration(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case slog.Level:
		return strings.ToLower(v.String())
	case *url.URL:
		if v == nil {
			return ""
		}
		u := *v
		if u.User != nil {
			u.User = url.User(hidden) // the user name may be an API key
		}
		return u.String()
	}
	return fmt.Sprint(value)
}
