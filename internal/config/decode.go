// Package config reads a configuration: strict YAML, with every mistake reported at once, each with its line. It knows
// the meaning of no key: [Decode] fills a struct, whose fields say by their tags what may be written. Each part of
// the gate has the struct of its own keys, with their defaults and their check:
//
//   - yaml: the name of the key
//   - doc: completes "expected …" in a mistake
//   - enum: the values that are allowed
//   - positive: the value must be more than zero
//   - size: the number is one of bytes, with a unit
//   - path: a relative path starts at the file's folder; "or -": - is no path
//   - restart: the key takes effect at start only, see [Restrain]
//   - secret: mistakes do not repeat the value, which may be a password
//   - hidden: [Effective] writes a mark in place of the value
//   - glob: what a glob.Glob matches, "host" or "text"
//
// A struct has the keys of the structs embedded in it. An item of a list of structs begins with the values that the
// method SetDefaults of its type sets, if there is one.
package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
)

// A decoder fills a struct from parsed YAML. yaml.v3's own decoder reads 010 as 8, 1.5 as 1 and yes as true, has no line
// for the errors of other types, and repeats passwords in its own.
type decoder struct {
	*field.Mistakes
	root   reflect.Type
	folder string                      // relative paths start here
	lookup func(string) (string, bool) // environment variables
}

// Decode reads data, of the file with this name, into the struct that into points to, and returns the mistakes.
// Relative paths start at folder. Lookup returns environment variables.
func Decode(into any, name, folder string, data []byte, lookup func(string) (string, bool)) *field.Mistakes {
	v := reflect.ValueOf(into).Elem()
	d := decoder{field.New(name), v.Type(), folder, lookup}
	root, err := parse(data)
	switch {
	case err != nil:
		line, text := explain(data, err)
		d.AddLine(line, "%s", text)
	case root != nil && !isNull(root):
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
	list, section := v.Kind() == reflect.Slice, len(fields(v.Type())) > 0
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
	known, first := fields(v.Type()), map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := n.Content[i].Value, n.Content[i].Line
		child := field.Join(path, key)
		f := slices.IndexFunc(known, func(f reflect.StructField) bool { return f.Name == key })
		switch {
		case n.Content[i].Kind != yaml.ScalarNode:
			d.AddLine(line, "a key must be a word, got %s", kind(n.Content[i], "", tag))
		case key == "<<":
			d.AddLine(line, "<< is not supported: write the keys here, or name the whole value by an alias (*name)")
		case f < 0:
			defer d.unknown(key, line, path, tag, v.Type()) // when the keys behind it are known to be given
		case first[key] > 0:
			d.AddLine(line, "%s is given twice, first in line %d: remove one of them", field.Display(child), first[key])
		default:
			first[key] = line
			d.value(n.Content[i+1], line, child, known[f].Tag, v.FieldByIndex(known[f].Index))
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
		d.Require(!isNull(item), child, "an empty item: remove it or give it a value")
		v.Set(reflect.Append(v, elem.Elem()))
	}
}

// unknown reports a key that struct type t does not have, with the key that was probably
// meant. The keys that it has are decoded already.
func (d *decoder) unknown(key string, line int, path string, tag reflect.StructTag, t reflect.Type) {
	what, advice := field.Display(field.Join(path, key)), "expected one of "+strings.Join(keys(t), ", ")
	if tag.Get("secret") != "" {
		what = "in " + field.Display(path)
	}
	for _, f := range fields(d.root) {
		if t != f.Type && slices.Contains(keys(f.Type), key) {
			advice = "did you mean " + f.Name + "." + key + "?"
		}
	}
	if near := nearest(key, keys(t)); near != "" && d.Given(field.Join(path, near)) {
		advice = near + " is there already, remove one of them"
	} else if near != "" {
		d.Skip(field.Join(path, near)) // no second message if that key is required
		advice = "did you mean " + near + "?"
	}
	d.AddLine(line, "unknown key %.80s: %s", what, advice)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// fields returns the fields of struct type t that have a key, which replaces their name. Other types have none.
func fields(t reflect.Type) (all []reflect.StructField) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Name = f.Tag.Get("yaml"); f.Name != "" && !f.Anonymous {
			all = append(all, f)
		}
	}
	return all
}

// keys returns the keys of struct type t, in order.
func keys(t reflect.Type) (all []string) {
	for _, f := range fields(t) {
		all = append(all, f.Name)
	}
	return all
}
