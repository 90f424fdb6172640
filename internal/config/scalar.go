package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"robotsgate/policy/glob"
)

// parsers turn the text of a value into the types of Config that have a
// spelling of their own. All others are strings, whole numbers and truths.
var parsers = map[reflect.Type]func(text string, tag reflect.StructTag) (any, error){
	reflect.TypeFor[time.Duration](): func(s string, _ reflect.StructTag) (any, error) { return parseDuration(s) },
	reflect.TypeFor[Size]():          func(s string, _ reflect.StructTag) (any, error) { return parseSize(s) },
	reflect.TypeFor[netip.Prefix]():  func(s string, _ reflect.StructTag) (any, error) { return parsePrefix(s) },
	reflect.TypeFor[time.Time]():     func(s string, _ reflect.StructTag) (any, error) { return parseExpiry(s) },
	reflect.TypeFor[*url.URL]():      func(s string, _ reflect.StructTag) (any, error) { return parseProxy(s) },
	reflect.TypeFor[slog.Level]():    func(s string, _ reflect.StructTag) (any, error) { return parseLevel(s), nil },
	reflect.TypeFor[glob.Glob]():     parseGlob,
}

// examples are values to write for types whose fields have no doc tag.
var examples = map[reflect.Type]string{
	reflect.TypeFor[netip.Prefix]():  "10.0.0.0/8",
	reflect.TypeFor[glob.Glob]():     `"*.example.com"`,
	reflect.TypeFor[Size]():          "512KiB",
	reflect.TypeFor[time.Duration](): "24h",
}

func isScalarType(t reflect.Type) bool {
	return parsers[t] != nil || t.Kind() == reflect.String || t.Kind() == reflect.Int || t.Kind() == reflect.Bool
}

// scalar decodes one value that is no list and no mapping.
func (d *decoder) scalar(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	want := wanted(v.Type(), tag)
	if n.Kind != yaml.ScalarNode {
		d.mistake(path, "expected %s, got %s", want, kind(n))
		return
	}
	if isNull(n) {
		d.mistake(path, "has no value: expected %s; to get the default, remove the line", want)
		return
	}
	text, replaced, err := expand(n.Value, d.lookup)
	if errors.Is(err, errNoVariable) && isSecret(tag) {
		err = fmt.Errorf("has a ${ that begins no variable: %w", errNoVariable)
	}
	if err != nil {
		d.mistake(path, "%v", err)
		return
	}
	// A variable's value has no type. Everything else must be what it looks
	// like, so that 010 or "5" can't mean one thing here and another elsewhere.
	if replaced {
		d.fill(path)
	} else if problem := wrongType(n, tag, v.Type()); problem != "" {
		if isSecret(tag) {
			problem = "something else: put text in quotes"
		}
		d.mistake(path, "expected %s, got %s", want, problem)
		return
	}
	if err := setScalar(text, tag, v); err != nil {
		d.mistake(path, "%v", err)
	}
}

// wrongType says what n is if it can't be a value of type t.
func wrongType(n *yaml.Node, tag reflect.StructTag, t reflect.Type) string {
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" {
		return strconv.Quote(n.ShortTag()+" "+cut(n.Value)) + ": remove the tag"
	}
	switch {
	case parsers[t] != nil:
		return ""
	case t.Kind() == reflect.String && !quoted && n.Style&yaml.TaggedStyle == 0:
		enum := tag.Get("enum") != ""
		if typ := n.ShortTag(); typ != "!!int" && typ != "!!float" && typ != "!!bool" && (enum || !isSwitch(n.Value)) {
			return ""
		}
		// Quotes make it text, which helps where any text will do.
		if enum || strings.HasPrefix(tag.Get("doc"), "host") {
			return cut(n.Value)
		}
		return fmt.Sprintf("%s: if it is meant, put it in quotes", cut(n.Value))
	case t.Kind() != reflect.String && quoted:
		return fmt.Sprintf("text in quotes, %q", cut(n.Value))
	}
	return ""
}

// isSwitch reports whether text is true or false in YAML 1.1, and text since: what
// says off must not name a file of that name.
func isSwitch(text string) bool {
	return slices.Contains([]string{"on", "off", "yes", "no"}, strings.ToLower(text))
}

func setScalar(text string, tag reflect.StructTag, v reflect.Value) error {
	if values, ok := tag.Lookup("enum"); ok && !slices.Contains(strings.Split(values, ","), text) {
		return fmt.Errorf("expected %s, got %q", wanted(v.Type(), tag), cut(text))
	}
	if parse := parsers[v.Type()]; parse != nil {
		value, err := parse(text, tag)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(value))
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		switch text {
		case "true", "True", "TRUE":
			v.SetBool(true)
		case "false", "False", "FALSE":
			v.SetBool(false)
		default:
			return fmt.Errorf("expected true or false, got %q", cut(text))
		}
	case reflect.Int:
		n, err := parseInt(text)
		if err != nil {
			return fmt.Errorf("expected %s, %v", wanted(v.Type(), tag), err)
		}
		v.SetInt(n)
	default:
		v.SetString(text)
	}
	return nil
}

// parseInt reads decimal digits only: to some readers of YAML 010 is 8.
func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	digits := strings.TrimPrefix(text, "-")
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large", text)
	case err != nil || strings.HasPrefix(text, "+"):
		return 0, fmt.Errorf("got %q", cut(text))
	case len(digits) > 1 && digits[0] == '0':
		return 0, fmt.Errorf("got %s, which has a leading zero: write %d", text, n)
	}
	return n, nil
}

// wanted completes "expected …".
func wanted(t reflect.Type, tag reflect.StructTag) string {
	if values, ok := tag.Lookup("enum"); ok {
		words := strings.Split(values, ",")
		if last := len(words) - 1; words[last] == "" {
			words[last] = `""`
		}
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	if doc := tag.Get("doc"); doc != "" {
		return doc
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 24h, 5m or 10s"
	case reflect.TypeFor[Size]():
		return "a size such as 512KiB or 64MiB"
	case reflect.TypeFor[netip.Prefix]():
		return "an address range such as 10.0.0.0/8"
	case reflect.TypeFor[glob.Glob]():
		if tag.Get("glob") == "text" {
			return `a pattern such as "*examplebot*"`
		}
		return `a host such as example.com or "*.example.com"`
	}
	if t.Kind() == reflect.Bool {
		return "true or false"
	}
	return "a value"
}

// listOf completes "expected a list …" for items of type t.
func listOf(t reflect.Type, tag reflect.StructTag) string {
	if t.Kind() == reflect.Struct && !isScalarType(t) {
		first := t.Field(0)
		if first.Type.Kind() == reflect.Slice {
			return fmt.Sprintf("with items such as - %s: [%s]", first.Tag.Get("yaml"), example(first.Type.Elem(), first.Tag))
		}
		return fmt.Sprintf("with items such as - %s: %s", first.Tag.Get("yaml"), example(first.Type, first.Tag))
	}
	return fmt.Sprintf("such as [%s]", example(t, tag))
}

// example is a value to show for type t.
func example(t reflect.Type, tag reflect.StructTag) string {
	if e := examples[t]; e != "" {
		return e
	}
	if _, e, ok := strings.Cut(tag.Get("doc"), "such as "); ok {
		return e
	}
	return "name"
}

func parseGlob(text string, tag reflect.StructTag) (any, error) {
	if tag.Get("glob") == "host" {
		g, err := glob.Host(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no host: %w", cut(text), err)
		}
		return g, nil
	}
	switch {
	case text == "":
		return nil, errors.New("an empty pattern matches nothing: remove it")
	case strings.Trim(text, " \t") != text:
		return nil, fmt.Errorf("%q can't match: a header's value has no white space at its ends", cut(text))
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return nil, fmt.Errorf("%q can't match: a header's value has no control characters", cut(text))
	}
	return glob.Text(text), nil
}

func parseLevel(text string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(text)) // one of the enum's words
	return l
}
