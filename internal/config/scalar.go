package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

// scalar decodes n, which stands at path, into v.
func (d *decoder) scalar(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) error {
	text, replaced, err := expand(n.Value, d.lookup)
	if err != nil {
		return err
	}
	refuse := func(advice string) error {
		return fmt.Errorf("expected %s, got %s%s", wanted(v.Type(), tag), kind(n, text, tag), advice)
	}
	enum := strings.Split(tag.Get("enum"), ",")
	switch {
	case n.Kind != yaml.ScalarNode:
		return refuse("")
	case isNull(n):
		return refuse(": to get the default, remove the line")
	case n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str":
		return refuse(": remove the tag")
	case len(enum) > 1 && !slices.Contains(enum, text):
		if near := nearest(field.Cut(text), enum); near > "9" { // numbers resemble each other
			return refuse(": did you mean " + near + "?")
		}
		return refuse("")
	case len(enum) == 1 && v.Kind() == reflect.String && !replaced && (strings.Contains("!!int !!float !!bool", n.ShortTag()) || n.Style == 0 && switches.MatchString(text)):
		return refuse(": if it is meant, put it in quotes")
	}
	n = &yaml.Node{Kind: yaml.ScalarNode, Style: n.Style, Tag: n.Tag, Value: text}
	if replaced { // a variable's value has the type that it looks like
		n.Style, n.Tag = 0, ""
	}
	whole, ok := v.Type() == reflect.TypeFor[int](), false
	switch ok, err = d.set(n, tag, v); {
	case err != nil:
		return refuse(": " + err.Error())
	case ok && (tag.Get("positive") == "" || !v.IsZero()):
	case whole && len(text) > 1 && text[0] == '0':
		return refuse(": remove the leading zero")
	case n.Style != 0 && (whole || v.Kind() == reflect.Bool):
		return refuse(": remove the quotes")
	default:
		return refuse("")
	}
	if replaced && text == "" {
		delete(d.Lines, path) // an empty variable counts as a key that is not given
	}
	return nil
}

// switches are booleans in YAML 1.1. They are text in YAML 1.2, but "audit: off" must not name a file off.
var switches = regexp.MustCompile(`^(?i:on|off|yes|no)$`)

// kind says what a node is. Text is its value.
func kind(n *yaml.Node, text string, tag reflect.StructTag) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys (a mapping)"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case tag.Get("secret") != "":
		return "something else"
	}
	return strconv.Quote(field.Cut(text))
}

// set parses the text of n into v. It returns an error if that has more to say than what was expected.
func (d *decoder) set(n *yaml.Node, tag reflect.StructTag, v reflect.Value) (ok bool, advice error) {
	text, err := n.Value, error(nil)
	switch x := v.Addr().Interface().(type) {
	case *netip.Prefix:
		*x, err = netip.ParsePrefix(text)
		// The gate compares the IPv4 addresses of clients, so an IPv4 range in IPv6 would never match.
		return err == nil && *x == x.Masked() && !x.Addr().Is4In6(), nil
	case *time.Time:
		if *x, err = time.Parse(time.DateOnly, text); err != nil {
			*x, err = time.Parse(time.RFC3339, text)
			*x = x.UTC()
		} else {
			*x = x.AddDate(0, 0, 1) // the day is the last one
		}
		return err == nil, nil
	case **url.URL:
		if *x = nil; text != "" {
			*x, err = field.ParseProxy(text)
		}
		return err == nil, nil
	case *glob.Glob:
		if tag.Get("glob") == "host" {
			*x, err = glob.Host(text)
			return err == nil, err
		}
		*x = glob.Text(text)
		if text == "" || strings.Trim(text, " \t") != text || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
			return false, errors.New("a header's value is not empty, and has no control characters and no white space at its ends")
		}
		return true, nil
	}
	switch {
	case tag.Get("size") != "":
		size, ok := field.ParseSize(text)
		v.SetInt(size)
		return ok, nil
	case v.Kind() == reflect.Bool || v.Type() == reflect.TypeFor[int](): // yaml.v3 reads 010 as 8, 1.5 as 1 and yes as true
		err = n.Decode(v.Addr().Interface())
		inRange := v.Kind() == reflect.Bool || v.Int() >= 0 && v.Int() <= math.MaxInt32
		return err == nil && inRange && fmt.Sprint(v) == strings.ToLower(text), nil
	case v.Kind() != reflect.String: // a duration or a level
		return n.Decode(v.Addr().Interface()) == nil && !strings.HasPrefix(text, "-"), nil
	case tag.Get("path") == "" || text == "" || filepath.IsAbs(text) || text == "-" && tag.Get("path") == "or -":
		v.SetString(text)
	case text == "~" || strings.HasPrefix(text, "~/"):
		return false, errors.New("~ has a meaning in shells only, write ${HOME}" + text[1:])
	default:
		v.SetString(filepath.Join(d.folder, text)) // the working directory of the process does not matter
	}
	return true, nil
}

// wanted completes "expected …".
func wanted(t reflect.Type, tag reflect.StructTag) string {
	least := ""
	if tag.Get("positive") != "" {
		least = ", more than 0"
	} else if t == reflect.TypeFor[int]() && tag.Get("enum") == "" {
		least = ", 0 or more"
	}
	switch words := strings.Split(tag.Get("enum"), ","); {
	case t.Kind() == reflect.Slice:
		return "a list in [ ], each item " + wanted(t.Elem(), tag)
	case len(fields(t)) > 0:
		return "keys such as " + keys(t)[0] + ":"
	case len(words) > 1:
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + cmp.Or(words[last], `""`)
	case tag.Get("size") != "":
		return "a size with its unit, such as 512KiB, 64MiB or 1GB" + least
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t == reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 24h, 5m or 10s" + least
	}
	return tag.Get("doc") + least
}

// variable matches ${NAME}, $${ for a literal ${, and ${ alone.
var variable = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*\})?`)

// expand replaces each ${NAME} in text with the value that lookup returns. Values are not expanded again. Other dollar
// signs, such as in a bcrypt hash, stay. Errors do not repeat the text, which may be a password.
func expand(text string, lookup func(string) (string, bool)) (out string, replaced bool, err error) {
	out = variable.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.Trim(match, "${}")
		value, ok := lookup(name)
		switch {
		case match == "$${":
			return "${"
		case name == "":
			err = cmp.Or(err, errors.New("has a ${ that begins no variable: write ${NAME}, or $${ for a literal ${"))
		case !ok:
			err = cmp.Or(err, fmt.Errorf("the environment variable %s is not set: set it, or write the value here", name))
		}
		replaced = true
		return value
	})
	return out, replaced, err
}
