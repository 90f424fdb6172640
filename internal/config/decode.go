package config

import (
	"reflect"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
)

// maxNodes bounds the values that are decoded, since a few lines with aliases can stand for millions of
// values, and a kept configuration may come from another operator.
const maxNodes = 200_000

// A decoder fills a struct from parsed YAML. yaml.v3's own decoder reads 010 as 8, 1.5 as 1 and yes as true, has no line
// for the errors of other types, and repeats passwords in its own.
type decoder struct {
	*field.Mistakes
	root   reflect.Type
	lookup func(string) (string, bool) // environment variables
	folder string                      // relative paths start here
	nodes  int                         // decoded so far
}

// Decode reads data, of the file with this name, into the struct that into points to, and returns the mistakes.
// Relative paths start at folder. Lookup returns environment variables.
func Decode(into any, name, folder string, data []byte, lookup func(string) (string, bool)) *field.Mistakes {
	v := reflect.ValueOf(into).Elem()
	d := decoder{Mistakes: field.New(name), root: v.Type(), lookup: lookup, folder: folder}
	root, err := parseYAML(data)
	switch {
	case err != nil:
		line := syntaxLine(data)
		d.AddLine(line, "%s", syntaxText(data, line, err))
	case root == nil || isNull(root):
	case root.Kind != yaml.MappingNode:
		d.AddLine(root.Line, "expected %s, got %s", wanted(v.Type(), ""), kind(root, root.Value, ""))
	default:
		d.value(root, "", "", v)
		if d.nodes > maxNodes {
			d.AddLine(root.Line, "more than %d values, aliases (*name) counted in full: use fewer of them", maxNodes)
		}
	}
	return d.Mistakes
}

// value decodes n, which stands at path, into v. The tag is that of the struct field v belongs to.
func (d *decoder) value(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	if d.nodes++; d.nodes > maxNodes {
		return
	}
	n = resolve(n)
	list, section := v.Kind() == reflect.Slice, len(fields(v.Type())) > 0
	switch {
	case !list && !section:
		d.Refuse(path, d.scalar(n, path, tag, v))
	case isNull(n):
		// A section or list whose lines are all commented out has its default.
	case section && n.Kind == yaml.MappingNode:
		d.mapping(n, path, tag, v)
	case list && n.Kind == yaml.SequenceNode:
		d.list(n, path, tag, v)
	default:
		d.Add(path, "expected %s, got %s", wanted(v.Type(), tag), kind(n, n.Value, tag))
	}
}

func (d *decoder) mapping(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	known, first := map[string]reflect.StructField{}, map[string]int{}
	for _, f := range fields(v.Type()) {
		known[f.Name] = f
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := resolve(n.Content[i]), n.Content[i].Line
		f, ok := known[key.Value]
		child := field.Join(path, key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			d.AddLine(line, "a key must be a word, got %s", kind(key, "", tag))
		case key.ShortTag() == "!!merge":
			d.AddLine(line, "<< is not supported: write the keys here, or name the whole value by an alias (*name)")
		case !ok:
			defer d.unknown(key.Value, line, path, tag, v.Type()) // when the keys behind it are known to be given
		case first[key.Value] > 0:
			d.AddLine(line, "%s is given twice, first in line %d: remove one of them", field.Display(child), first[key.Value])
		default:
			first[key.Value], d.Lines[child] = line, line
			d.value(n.Content[i+1], child, f.Tag, v.FieldByIndex(f.Index))
		}
	}
}

func (d *decoder) list(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	v.SetZero() // an empty list equals an absent one
	for i := 0; i < len(n.Content) && d.nodes <= maxNodes; i++ {
		item, child := n.Content[i], path+"["+strconv.Itoa(i)+"]"
		d.Lines[child] = item.Line
		elem := reflect.New(v.Type().Elem())
		if e, ok := elem.Interface().(interface{ SetDefaults() }); ok {
			e.SetDefaults()
		}
		d.Require(!isNull(resolve(item)), child, "an empty item: remove it or give it a value")
		d.value(item, child, tag, elem.Elem())
		v.Set(reflect.Append(v, elem.Elem()))
	}
}

// resolve returns the node that an alias refers to.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // never an alias itself
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// fields returns the fields of struct type t, with their keys in the file as names. Those of a struct with the tag
// ",inline" count as fields of t. Other types have none.
func fields(t reflect.Type) (all []reflect.StructField) {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		switch f.Name = f.Tag.Get("yaml"); f.Name {
		case "":
		case ",inline":
			for _, inner := range fields(f.Type) {
				inner.Index = slices.Concat(f.Index, inner.Index)
				all = append(all, inner)
			}
		default:
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
