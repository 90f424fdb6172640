package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

// scalar decodes n, which stands at path, into v.
func (d *decoder) scalar(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) error {
	text, err := expand(n.Value, d.lookup)
	if err != nil {
		return err
	}
	ok, advice := d.set(text, tag, v)
	// Plain text that is no string in YAML 1.2, or a word for a switch in YAML 1.1: "audit: off" must not name a file. The
	// letters y and n are switches there too, but are more often names.
	typed := n.Style == 0 && (len(n.Value) > 1 && n.Decode(new(bool)) == nil || n.Decode(new(float64)) == nil)
	number := v.Kind() == reflect.Bool || v.Type() == reflect.TypeFor[int]()
	switch {
	case isNull(n):
		advice = ": to get the default, remove the line"
	case n.Style&yaml.TaggedStyle != 0:
		advice = ": remove the tag"
	case number && n.Style != 0 && text == n.Value: // a variable's value has the type that it looks like
		advice = ": remove the quotes"
	case v.Kind() == reflect.String && tag.Get("enum") == "" && typed:
		advice = ": if it is meant, put it in quotes"
	case ok && (tag.Get("positive") == "" || !v.IsZero()):
		if text == "" && n.Value != "" {
			delete(d.Lines, path) // an empty variable counts as a key that is not given
		}
		return nil
	}
	return mismatch(n, text, tag, v, advice)
}

// mismatch says that n, with its text, is not what v takes.
func mismatch(n *yaml.Node, text string, tag reflect.StructTag, v reflect.Value, advice string) error {
	got := fmt.Sprintf("%.80q", text)
	if tag.Get("secret") != "" {
		got = "something else"
	}
	kind := map[string]string{"!!map": "keys (a mapping)", "!!seq": "a list", "!!null": "nothing"}[n.ShortTag()]
	return fmt.Errorf("expected %s, got %s%s", wanted(v.Type(), tag), cmp.Or(kind, got), advice)
}

// set parses text into v. Advice has more to say than what was expected.
func (d *decoder) set(text string, tag reflect.StructTag, v reflect.Value) (ok bool, advice string) {
	if enum := strings.Split(tag.Get("enum"), ","); len(enum) > 1 && !slices.Contains(enum, text) {
		return false, ""
	}
	var err error
	switch x := v.Addr().Interface().(type) {
	case *bool:
		*x = strings.EqualFold(text, "true")
		return *x || strings.EqualFold(text, "false"), ""
	case *int:
		n, err := strconv.ParseUint(text, 10, 31)
		if *x = int(n); len(text) > 1 && text[0] == '0' { // some readers of YAML take it for octal
			return false, ": remove the leading zero"
		}
		return err == nil, ""
	case *int64:
		*x, ok = field.ParseSize(text)
		return ok, ""
	case *time.Duration:
		*x, err = time.ParseDuration(text)
		return err == nil && *x >= 0 && text != "0", ""
	case *slog.Level:
		err = x.UnmarshalText([]byte(text))
	case *netip.Prefix:
		*x, err = netip.ParsePrefix(text)
		// The gate compares the IPv4 addresses of clients, so an IPv4 range in IPv6 would never match.
		return err == nil && *x == x.Masked() && !x.Addr().Is4In6(), ""
	case *time.Time:
		if *x, err = time.Parse(time.RFC3339, text); err != nil {
			*x, err = time.Parse(time.DateOnly, text)
			*x = x.AddDate(0, 0, 1) // the day is the last one
		}
	case **url.URL:
		if *x = nil; text != "" {
			*x, err = url.Parse(text)
		}
	case *glob.Glob:
		if *x = glob.Text(text); tag.Get("glob") == "host" {
			*x, err = glob.Host(text)
		}
		if err != nil {
			advice = ": " + err.Error()
		}
	default:
		relative := tag.Get("path") != "" && text != "" && text != "-" && !filepath.IsAbs(text)
		if relative && strings.HasPrefix(text, "~/") {
			return false, ": ~ has a meaning in shells only, write ${HOME}" + text[1:]
		}
		if relative {
			text = filepath.Join(d.folder, text) // the working directory of the process does not matter
		}
		v.SetString(text)
	}
	return err == nil, advice
}

// wanted completes "expected …".
func wanted(t reflect.Type, tag reflect.StructTag) string {
	text, enum := tag.Get("doc"), strings.Split(tag.Get("enum"), ",")
	last := len(enum) - 1
	keys, _ := fields(t)
	switch {
	case t.Kind() == reflect.Slice:
		return "a list in [ ], each item " + wanted(t.Elem(), tag)
	case len(keys) > 0:
		return "keys such as " + keys[0] + ":"
	case last > 0:
		return strings.Join(enum[:last], ", ") + " or " + cmp.Or(enum[last], `""`)
	case t == reflect.TypeFor[int64]():
		text = "a size with its unit, such as 512KiB, 64MiB or 1GB"
	case t.Kind() == reflect.Bool:
		text = "true or false"
	case t == reflect.TypeFor[time.Duration]():
		text = "a duration with its unit, such as 24h, 5m or 10s"
	}
	if tag.Get("positive") != "" {
		text += ", more than 0"
	}
	return text
}

// variable matches ${NAME}, $${ for a literal ${, and ${ alone.
var variable = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*\})?`)

// expand replaces each ${NAME} in text with the value that lookup returns. Values are not expanded again. Other dollar
// signs, such as in a bcrypt hash, stay. Errors do not repeat the text, which may be a password.
func expand(text string, lookup func(string) (string, bool)) (out string, err error) {
	out = variable.ReplaceAllStringFunc(text, func(match string) string {
		if match == "$${" {
			return "${"
		}
		name := strings.Trim(match, "${}")
		value, ok := lookup(name)
		if name == "" {
			err = errors.New("has a ${ that begins no variable: write ${NAME}, or $${ for a literal ${")
		} else if !ok {
			err = fmt.Errorf("the environment variable %s is not set: set it, or write the value here", name)
		}
		return value
	})
	return out, err
}

// Effective returns the struct that v points to as YAML in one canonical form: every key with the value in force, from
// the file, the environment, the command line or the defaults. Configurations that differ only in secrets have the same
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
	case bool, int:
		return x
	case int64:
		text = field.Size(x)
	case time.Time:
		text = x.Format(time.RFC3339Nano) // Decode reads the zero time, too
	case slog.Level:
		text = strings.ToLower(text)
	}
	switch secret := tag.Get("secret") != ""; {
	case secret && v.IsZero():
		return ""
	case secret:
		return "xxxxx"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${")
}
