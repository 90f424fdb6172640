package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// secret stands for what must not be kept.
const secret = "xxxxx"

// Effective returns c as YAML in one canonical form: every key with the value in
// force, whether it comes from the file, the environment, the command line or the
// defaults. Secrets are replaced by a mark, so two configurations that differ only in
// those are one. [Kept] reads it.
func (c *Config) Effective() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(effective(reflect.ValueOf(c).Elem(), "")); err != nil {
		return nil, fmt.Errorf("the configuration in force can't be written: %w", err)
	}
	return out.Bytes(), enc.Close()
}

// effective returns a value, which stands under key, as YAML.
func effective(v reflect.Value, key string) *yaml.Node {
	switch {
	case v.Kind() == reflect.Struct && !isScalar(v.Type()):
		n := &yaml.Node{Kind: yaml.MappingNode}
		for f, field := range v.Fields() {
			name := f.Tag.Get("yaml")
			if name == "" || field.Type() == reflect.TypeFor[time.Time]() && field.IsZero() {
				continue // a time that is not given has no spelling
			}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, effective(field, name))
		}
		return n
	case v.Kind() == reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, effective(v.Index(i), ""))
		}
		return n
	case v.Kind() == reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(v.Bool())}
	case v.Kind() == reflect.Int && !isNamed(v):
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatInt(v.Int(), 10)}
	}
	text := spelling(v.Interface())
	if key == "password_bcrypt" && text != "" {
		text = secret
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${")
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
}

// isNamed reports whether whole numbers of v's type have a spelling of their own.
func isNamed(v reflect.Value) bool { return parsers[v.Type()] != nil }

// spelling is the text of a value that is read by one of parsers, or is text.
func spelling(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return short(v)
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
			u.User = url.User(secret) // a name may be a key, too
		}
		return u.String()
	}
	return fmt.Sprint(value)
}

// Kept reads what [Config.Effective] has written, for deciding about the past: the
// files that it names need not be there any more, and it is not checked otherwise.
func Kept(data []byte) (*Config, error) {
	c := Default()
	c.Robots.Readings = "literal" // how all paths were judged before there was this key
	c.source = newSource("configuration")
	root, err := parseYAML(data)
	if err != nil {
		return nil, fmt.Errorf("a kept configuration: %w", err)
	}
	d := decoder{source: &c.source, lookup: func(string) (string, bool) { return "", false }}
	d.document(root, c)
	if err := c.source.sorted(); err != nil {
		return nil, err
	}
	return c, nil
}
