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
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

// A notation is how the values of a type are written.
type notation struct {
	parse   func(text string, tag reflect.StructTag) (any, error)
	wanted  string // completes "expected …", for fields without the tag doc
	example string
}

// notations has the types of Config that are not strings.
var notations = map[reflect.Type]notation{
	reflect.TypeFor[bool]():          {parse: untagged(parseBool), wanted: "true or false"},
	reflect.TypeFor[int]():           {parse: parseInt},
	reflect.TypeFor[time.Duration](): {untagged(field.ParseDuration), "a duration such as 24h, 5m or 10s", "10s"},
	reflect.TypeFor[netip.Prefix]():  {parse: untagged(field.ParsePrefix)},
	reflect.TypeFor[time.Time]():     {parse: untagged(field.ParseExpiry)},
	reflect.TypeFor[*url.URL]():      {parse: untagged(field.ParseProxy)},
	reflect.TypeFor[slog.Level]():    {parse: untagged(parseLevel)},
	reflect.TypeFor[glob.Glob]():     {parse: parseGlob},
}

// sizes is the notation of numbers with the tag size.
var sizes = notation{untagged(field.ParseSize), "a size such as 512KiB or 64MiB", "512KiB"}

func notationOf(t reflect.Type, tag reflect.StructTag) notation {
	if tag.Get("size") != "" {
		return sizes
	}
	return notations[t]
}

func untagged[T any](parse func(string) (T, error)) func(string, reflect.StructTag) (any, error) {
	return func(text string, _ reflect.StructTag) (any, error) { return parse(text) }
}

func isScalar(t reflect.Type) bool {
	return notations[t].parse != nil || t.Kind() == reflect.String || t.Kind() == reflect.Int64
}

// isSection reports whether t has keys.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isScalar(t) }

// scalar decodes n, which stands at path, into v.
func (d *decoder) scalar(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) error {
	want := wanted(v.Type(), tag)
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("expected %s, got %s", want, kind(n))
	}
	if isNull(n) {
		return fmt.Errorf("has no value: expected %s; to get the default, remove the line", want)
	}
	text, replaced, err := expand(n.Value, d.lookup)
	if errors.Is(err, errNoVariable) && isSecret(tag) {
		return fmt.Errorf("has a ${ that begins no variable: %w", errNoVariable)
	}
	if err != nil {
		return err
	}
	if problem := wrongType(n, tag, v.Type()); problem != "" && !replaced { // a variable's value has no type
		if isSecret(tag) {
			problem = "something else: put text in quotes"
		}
		return fmt.Errorf("expected %s, got %s", want, problem)
	}
	if err := d.set(text, tag, v); err != nil {
		return err
	}
	if replaced && text == "" {
		delete(d.lines, path) // an empty variable counts as a key that is not given
	}
	return nil
}

// wrongType says what n is if it can't be a value of type t. A value must have the type
// that it looks like, so that 010 and "5" mean the same here as to other YAML readers.
func wrongType(n *yaml.Node, tag reflect.StructTag, t reflect.Type) string {
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" {
		return strconv.Quote(n.ShortTag()+" "+field.Cut(n.Value)) + ": remove the tag"
	}
	switch {
	case t.Kind() == reflect.String && !quoted && n.Style&yaml.TaggedStyle == 0:
		enum := tag.Get("enum") != ""
		if typ := n.ShortTag(); typ != "!!int" && typ != "!!float" && typ != "!!bool" && (enum || !isSwitch(n.Value)) {
			return ""
		}
		if enum || strings.HasPrefix(tag.Get("doc"), "host") {
			return field.Cut(n.Value) // wrong in quotes, too
		}
		return field.Cut(n.Value) + ": if it is meant, put it in quotes"
	case quoted && tag.Get("size") == "" && (t == reflect.TypeFor[bool]() || t == reflect.TypeFor[int]()):
		return fmt.Sprintf("text in quotes, %q", field.Cut(n.Value))
	}
	return ""
}

// isSwitch reports whether text is a boolean in YAML 1.1. It is text in YAML 1.2, but
// "audit: off" must not name a file off.
func isSwitch(text string) bool {
	return slices.Contains([]string{"on", "off", "yes", "no"}, strings.ToLower(text))
}

// set parses text into v.
func (d *decoder) set(text string, tag reflect.StructTag, v reflect.Value) error {
	if values, ok := tag.Lookup("enum"); ok {
		if known := strings.Split(values, ","); !slices.Contains(known, text) {
			return fmt.Errorf("expected %s, got %q%s", wanted(v.Type(), tag), field.Cut(text), suggested(text, known))
		}
	}
	var value any = text
	var err error
	if parse := notationOf(v.Type(), tag).parse; parse != nil {
		value, err = parse(text, tag)
	} else if tag.Get("path") != "" {
		value, err = d.path(text, tag)
	}
	if err != nil {
		return err
	}
	if n, ok := value.(int64); ok && v.OverflowInt(n) {
		return fmt.Errorf("%q is too large", text)
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
	if tag.Get("positive") != "" && v.IsZero() {
		return fmt.Errorf("must be more than %s, such as %s", format(value, tag), example(v.Type(), tag))
	}
	return nil
}

// path makes a relative path start at the folder of the file, so that the working
// directory of the process does not matter.
func (d *decoder) path(text string, tag reflect.StructTag) (string, error) {
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		return "", fmt.Errorf("~ has a meaning in shells only: write ${HOME}%s", text[1:])
	case text == "" || filepath.IsAbs(text) || text == "-" && tag.Get("path") == "or -":
		return text, nil
	}
	return filepath.Join(d.folder, text), nil
}

func parseBool(text string) (bool, error) {
	value, err := strconv.ParseBool(text)
	if err != nil || len(text) < len("true") { // such as 1 and T
		return false, fmt.Errorf("expected true or false, got %q", field.Cut(text))
	}
	return value, nil
}

// parseInt reads decimal digits without a leading zero: to some readers of YAML 010 is 8.
func parseInt(text string, tag reflect.StructTag) (any, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	want := "expected " + tag.Get("doc")
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, fmt.Errorf("%s, %s is too large", want, text)
	case err != nil || text[0] == '+':
		return nil, fmt.Errorf("%s, got %q", want, field.Cut(text))
	case strconv.FormatInt(n, 10) != text:
		return nil, fmt.Errorf("%s, got %s, which has a leading zero: write %d", want, text, n)
	case n < 0 && tag.Get("zero") != "":
		return nil, errors.New("can't be negative; 0 is " + tag.Get("zero"))
	case n < 0:
		return nil, errors.New("can't be negative")
	}
	return int(n), nil
}

func parseLevel(text string) (l slog.Level, err error) {
	err = l.UnmarshalText([]byte(text))
	return l, err
}

func parseGlob(text string, tag reflect.StructTag) (any, error) {
	if tag.Get("glob") == "host" {
		g, err := glob.Host(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no host: %w", field.Cut(text), err)
		}
		return g, nil
	}
	switch {
	case text == "":
		return nil, errors.New("an empty pattern matches nothing: remove it")
	case strings.Trim(text, " \t") != text:
		return nil, fmt.Errorf("%q can't match: a header's value has no white space at its ends", field.Cut(text))
	case strings.ContainsFunc(text, func(r rune) bool { return field.IsControl(r) && r != '\t' }):
		return nil, fmt.Errorf("%q can't match: a header's value has no control characters", field.Cut(text))
	}
	return glob.Text(text), nil
}

// wanted completes "expected …".
func wanted(t reflect.Type, tag reflect.StructTag) string {
	if values, ok := tag.Lookup("enum"); ok {
		words := strings.Split(values, ",")
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + cmp.Or(words[last], `""`)
	}
	return cmp.Or(tag.Get("doc"), notationOf(t, tag).wanted)
}

// listOf completes "expected a list …" for items of type t.
func listOf(t reflect.Type, tag reflect.StructTag) string {
	if isScalar(t) {
		return "such as [" + example(t, tag) + "]"
	}
	for key, first := range fields(t) {
		value := example(first.Type, first.Tag)
		if first.Type.Kind() == reflect.Slice {
			value = "[" + value + "]"
		}
		return "with items such as - " + key + ": " + value
	}
	return ""
}

// example returns a value of type t for a message.
func example(t reflect.Type, tag reflect.StructTag) string {
	if _, e, ok := strings.Cut(tag.Get("doc"), "such as "); ok {
		return e
	}
	return cmp.Or(notationOf(t, tag).example, "name")
}
