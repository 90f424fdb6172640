package config

import (
	"iter"
	"reflect"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/field"
)

// maxNodes bounds the values that are decoded, since a few lines with aliases can stand for millions of
// values, and a kept configuration may come from another operator.
const maxNodes = 200_000

// A decoder fills a struct from parsed YAML. yaml.v3's own decoder stops at some
// mistakes, has no line for others, and names Go types in its errors.
type decoder struct {
	*Source
	root   reflect.Type
	lookup func(string) (string, bool) // environment variables
	folder string                      // relative paths start here
	nodes  int                         // decoded so far
}

// Decode reads data, of the file with this name, into the struct that into points to, and notes the mistakes.
// Relative paths start at folder. Lookup returns environment variables.
func Decode(into any, name, folder string, data []byte, lookup func(string) (string, bool)) *Source {
	s, v := newSource(name, lines{}), reflect.ValueOf(into).Elem()
	root, err := parseYAML(data)
	if err != nil {
		line := syntaxLine(data, func(beginning []byte) bool {
			_, err := parseYAML(beginning)
			return err == nil
		})
		s.note(line, "%s", syntaxText(data, line, err))
	}
	if root == nil || isNull(root) {
		return s
	}
	if resolve(root).Kind != yaml.MappingNode {
		for key, first := range fields(v.Type()) {
			s.note(root.Line, "expected keys such as \"%s: %v\", got %s", key, v.FieldByIndex(first.Index), kind(root))
			break
		}
		return s
	}
	d := decoder{Source: s, root: v.Type(), lookup: lookup, folder: folder}
	d.value(root, "", "", v)
	if d.nodes > maxNodes {
		d.note(root.Line, "more than %d values, aliases (*name) counted in full: use fewer of them", maxNodes)
	}
	return s
}

// value decodes n, which stands at path, into v. The tag is that of the struct
// field v belongs to.
func (d *decoder) value(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	if d.nodes++; d.nodes > maxNodes {
		return
	}
	n = resolve(n)
	switch {
	case isScalar(v.Type()):
		d.Refuse(path, d.scalar(n, path, tag, v))
	case isNull(n):
		// A section or list whose lines are all commented out has its default.
	case isSection(v.Type()):
		d.mapping(n, path, tag, v)
	default:
		d.list(n, path, tag, v)
	}
}

func (d *decoder) mapping(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		got := kind(n)
		if n.Kind == yaml.ScalarNode && isSecret(tag) {
			got = "something else"
		}
		d.Add(path, "expected keys such as %s:, got %s", keys(v.Type())[0], got)
		return
	}
	entries := d.entries(n, path)
	for key, f := range fields(v.Type()) {
		if e, given := entries[key]; given {
			child := field.Join(path, key)
			d.lines[child] = e.line
			d.value(e.value, child, f.Tag, v.FieldByIndex(f.Index))
			delete(entries, key)
		}
	}
	for key, e := range entries {
		d.unknown(key, e.line, path, tag, v.Type())
	}
}

// An entry is the value of a key in a mapping.
type entry struct {
	line  int // of the key
	value *yaml.Node
}

// entries returns the keys of the mapping n.
func (d *decoder) entries(n *yaml.Node, path string) map[string]entry {
	all := map[string]entry{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := resolve(n.Content[i]), n.Content[i].Line
		first, again := all[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.note(line, "a key must be a word, got %s", kind(key))
		case key.ShortTag() == "!!merge":
			d.note(line, "<< is not supported: write the keys here, or name the whole value by an alias (*name)")
		case again:
			d.note(line, "%s is given twice, first in line %d: remove one of them", display(field.Join(path, key.Value)), first.line)
		default:
			all[key.Value] = entry{line, n.Content[i+1]}
		}
	}
	return all
}

func (d *decoder) list(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.Add(path, "expected a list %s, got %s", listOf(v.Type().Elem(), tag), kind(n))
		return
	}
	v.SetZero() // an empty list equals an absent one
	for i, item := range n.Content {
		child := path + "[" + strconv.Itoa(i) + "]"
		d.lines[child] = item.Line
		elem := reflect.New(v.Type().Elem()).Elem()
		if item, ok := elem.Addr().Interface().(interface{ SetDefaults() }); ok {
			item.SetDefaults()
		}
		if isNull(resolve(item)) {
			d.Add(child, "an empty item: remove it or give it a value")
		} else {
			d.value(item, child, tag, elem)
		}
		v.Set(reflect.Append(v, elem))
		if d.nodes > maxNodes {
			return
		}
	}
}

func isSecret(tag reflect.StructTag) bool { return tag.Get("secret") != "" }

// resolve returns the node that an alias refers to.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // never an alias itself
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kind says what a node is.
func kind(n *yaml.Node) string {
	n = resolve(n)
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys (a mapping)"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return strconv.Quote(field.Cut(n.Value))
}

// fields yields the fields of struct type t by their keys in the file. Those of a struct with the tag ",inline" count
// as fields of t.
func fields(t reflect.Type) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for f := range t.Fields() {
			key := f.Tag.Get("yaml")
			if key == ",inline" {
				for key, inner := range fields(f.Type) {
					inner.Index = slices.Concat(f.Index, inner.Index)
					if !yield(key, inner) {
						return
					}
				}
			} else if key != "" && !yield(key, f) {
				return
			}
		}
	}
}

// keys returns the keys of struct type t, in order.
func keys(t reflect.Type) (all []string) {
	for key := range fields(t) {
		all = append(all, key)
	}
	return all
}
