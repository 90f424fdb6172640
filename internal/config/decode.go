// Package config reads a configuration: strict YAML, with every mistake reported at once, each with its line. It knows
// the meaning of no key: [Decode] fills a struct, whose fields say by their tags what may be written. Each part of
// the gate has the struct of its own keys, with their defaults and their check:
//
//	yaml      the name of the key
//	doc       completes "expected …" in a mistake
//	enum      the values that are allowed
//	positive  the value must be more than zero
//	path      a relative path starts at the file's folder; - is no path
//	restart   the key takes effect at start only, see [Restrain]
//	secret    neither mistakes nor [Effective] repeat the value, which may be a password
//	glob      what a glob.Glob matches, "host" or "text"
//
// An int64 is a number of bytes, with a unit. A struct has the keys of the structs embedded in it. An item of a list
// begins with what the method SetDefaults of its type sets, if there is one.
package config

import (
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
)

// A decoder fills a struct. yaml.v3's own reads 010 as 8, 1.5 as 1 and yes as true, and repeats passwords in its errors.
type decoder struct {
	*field.Mistakes
	root   reflect.Type
	folder string                      // relative paths start here
	lookup func(string) (string, bool) // environment variables
	values int                         // seen so far
}

// maxValues bounds the work of a hostile configuration: yaml.v3 counts no alias behind a key that is no word.
const maxValues = 200_000

// Decode reads data, of the file with this name, into the struct that into points to, and returns the mistakes.
// Relative paths start at folder. Lookup returns environment variables.
func Decode(into any, name, folder string, data []byte, lookup func(string) (string, bool)) *field.Mistakes {
	v := reflect.ValueOf(into).Elem()
	d := decoder{field.New(name), v.Type(), folder, lookup, 0}
	root, err := parse(data)
	if err != nil {
		line, text := explain(data, err)
		d.AddLine(line, "%s", text)
	} else if root != nil && !isNull(root) {
		d.value(root, root.Line, "", "", v)
	}
	return d.Mistakes
}

// value decodes n, which stands at path in a line, into v. The tag is that of the struct field v belongs to.
func (d *decoder) value(n *yaml.Node, line int, path string, tag reflect.StructTag, v reflect.Value) {
	d.Lines[path] = line
	if n.Kind == yaml.AliasNode {
		n = n.Alias // never an alias itself
	}
	if d.values += len(n.Content); d.values > maxValues {
		d.Add("", "more than %d values: use fewer aliases (*name)", maxValues)
		return
	}
	keys, _ := fields(v.Type())
	list, section := v.Kind() == reflect.Slice, len(keys) > 0
	var err error
	switch {
	case section && n.Kind == yaml.MappingNode:
		d.mapping(n, path, tag, v)
	case list && n.Kind == yaml.SequenceNode:
		d.list(n, path, tag, v)
	case n.Kind == yaml.ScalarNode && !section && !list:
		err = d.scalar(n, path, tag, v)
	case !isNull(n): // a section or list whose lines are all commented out has its default
		err = mismatch(n, n.Value, tag, v, "")
	}
	d.Refuse(path, err)
}

func (d *decoder) mapping(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	_, known := fields(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := n.Content[i].Value, n.Content[i].Line
		child := field.Join(path, key)
		f, ok := known[key]
		switch {
		case n.Content[i].Kind != yaml.ScalarNode:
			d.AddLine(line, "a key must be a word, not a list or a mapping")
		case key == "<<":
			d.AddLine(line, "<< is not supported: write the keys here, or name the whole value by an alias (*name)")
		case !ok:
			defer d.unknown(key, line, path, tag, v.Type()) // when the keys behind it are known to be given
		case d.Lines[child] > 0:
			d.AddLine(line, "%s is given twice, first in line %d: remove one of them", field.Display(child), d.Lines[child])
		default:
			d.value(n.Content[i+1], line, child, f.Tag, v.FieldByIndex(f.Index))
		}
	}
}

func (d *decoder) list(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	v.SetZero() // an empty list equals an absent one
	for i, item := range n.Content {
		child, elem := path+"["+strconv.Itoa(i)+"]", reflect.New(v.Type().Elem())
		if e, ok := elem.Interface().(interface{ SetDefaults() }); ok {
			e.SetDefaults()
		}
		d.value(item, item.Line, child, tag, elem.Elem())
		v.Set(reflect.Append(v, elem.Elem()))
	}
}

// unknown reports a key that struct type t does not have, with the key that was probably
// meant. The keys that it has are decoded already.
func (d *decoder) unknown(key string, line int, path string, tag reflect.StructTag, t reflect.Type) {
	known, _ := fields(t)
	what, advice := field.Display(field.Join(path, key)), "expected one of "+strings.Join(known, ", ")
	if tag.Get("secret") != "" {
		what = "in " + field.Display(path)
	}
	sections, of := fields(d.root)
	for _, section := range sections {
		if _, inner := fields(of[section].Type); t != of[section].Type && inner[key].Name != "" {
			advice = "did you mean " + section + "." + key + "?"
		}
	}
	if near := nearest(key, known); near != "" && d.Given(field.Join(path, near)) {
		advice = near + " is there already, remove one of them"
	} else if near != "" {
		d.Skip(field.Join(path, near)) // no second message if that key is required
		advice = "did you mean " + near + "?"
	}
	d.AddLine(line, "unknown key %.80s: %s", what, advice)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// fields returns the keys of struct type t in order, and the field of each. Other types have none.
func fields(t reflect.Type) (keys []string, of map[string]reflect.StructField) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	of = map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("yaml"); key != "" && !f.Anonymous {
			keys, of[key] = append(keys, key), f
		}
	}
	return keys, of
}

var plain = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// nearest returns the word of known that word is probably a misspelling of, "" if it resembles none.
func nearest(word string, known []string) string {
	bare := plain.Replace(strings.ToLower(word))
	// At most a third of the letters may differ: short keys would resemble any word.
	for edits := range min(max(len(bare), 3)/3, 2) + 1 {
		for _, k := range known {
			if within(edits, bare, plain.Replace(k)) || len(word) > 2 && strings.HasPrefix(k, word+"_") {
				return k
			}
		}
	}
	return ""
}

// within reports whether some edits at most (insert, remove, change) make a into b.
func within(edits int, a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if edits == 0 || a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	return within(edits-1, a[1:], b) || within(edits-1, a, b[1:]) || within(edits-1, a[1:], b[1:])
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
