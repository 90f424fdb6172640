package config

import (
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds the values that are looked at, since aliases of aliases can
// make billions of them out of a few lines.
const maxNodes = 200_000

// A decoder fills a Config from parsed YAML. It is our own because yaml.v3
// stops at some mistakes, has no line for others, and speaks of Go types.
type decoder struct {
	*source
	lookup func(string) (string, bool)
	nodes  int
}

func (d *decoder) document(root *yaml.Node, c *Config) {
	if root == nil || isNull(root) {
		return
	}
	if resolve(root).Kind != yaml.MappingNode {
		d.add(root.Line, "expected keys such as \"listen: %s\", got %s", Default().Listen, kind(root))
		return
	}
	d.value(root, "", "", reflect.ValueOf(c).Elem())
	if d.nodes > maxNodes {
		d.add(root.Line, "more than %d values, aliases (*name) counted in full: use fewer of them", maxNodes)
	}
}

// value decodes n, which stands at path, into v. The tag is that of the struct
// field v belongs to.
func (d *decoder) value(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	if d.nodes++; d.nodes > maxNodes {
		return
	}
	n = resolve(n)
	switch {
	case isScalarType(v.Type()):
		d.scalar(n, path, tag, v)
	case isNull(n):
		// A section or list whose lines are all commented out: the default.
	case v.Kind() == reflect.Struct:
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
		d.mistake(path, "expected keys such as %s:, got %s", keys(v.Type())[0], got)
		return
	}
	entries := d.entries(n, path)
	for _, e := range entries {
		field, ok := fieldOf(v.Type(), e.key)
		if !ok {
			d.unknown(e, entries, path, tag, v.Type())
			continue
		}
		child := join(path, e.key)
		d.lines[child] = e.line
		d.value(e.value, child, field.Tag, v.FieldByIndex(field.Index))
	}
}

func (d *decoder) list(n *yaml.Node, path string, tag reflect.StructTag, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.mistake(path, "expected a list %s, got %s", listOf(v.Type().Elem(), tag), kind(n))
		return
	}
	v.SetZero() // an empty list is as good as none
	for i, item := range n.Content {
		child := path + "[" + strconv.Itoa(i) + "]"
		d.lines[child] = item.Line
		elem := reflect.New(v.Type().Elem()).Elem()
		if c, ok := elem.Addr().Interface().(*Crawler); ok {
			*c = DefaultCrawler()
			c.Name = "" // each needs one of its own
		}
		if isNull(resolve(item)) {
			d.mistake(child, "an empty item: remove it or give it a value")
		} else {
			d.value(item, child, tag, elem)
		}
		v.Set(reflect.Append(v, elem))
		if d.nodes > maxNodes {
			return
		}
	}
}

// An entry is one key of a mapping with its value.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// entries returns the entries of a mapping in order, then those that a merge
// key (<<) adds to it.
func (d *decoder) entries(n *yaml.Node, path string) []entry {
	var list, merged []entry
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.add(n.Content[i].Line, "a key must be a word, got %s", kind(key))
			continue
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, d.merge(value, path, 0)...)
			continue
		}
		if first, ok := seen[key.Value]; ok {
			d.add(key.Line, "%s is given twice, first in line %d: remove one of them", display(join(path, key.Value)), first)
			continue
		}
		seen[key.Value] = n.Content[i].Line
		list = append(list, entry{key.Value, n.Content[i].Line, value})
	}
	for _, e := range merged {
		if _, ok := seen[e.key]; !ok { // what the mapping says itself goes first
			seen[e.key] = e.line
			list = append(list, e)
		}
	}
	return list
}

// merge returns the entries that the value of a merge key stands for.
func (d *decoder) merge(n *yaml.Node, path string, depth int) []entry {
	if d.nodes++; d.nodes > maxNodes {
		return nil
	}
	n = resolve(n)
	const deep = 100 // more is a mapping that merges itself
	switch {
	case n.Kind == yaml.SequenceNode && depth < deep:
		var list []entry
		for _, item := range n.Content {
			list = append(list, d.merge(item, path, depth+1)...)
		}
		return list
	case n.Kind != yaml.MappingNode || depth >= deep:
		d.add(n.Line, "<< takes another mapping, as in \"<<: *name\"")
		return nil
	}
	var list, deeper []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if key.ShortTag() == "!!merge" {
			deeper = append(deeper, d.merge(n.Content[i+1], path, depth+1)...)
		} else if key.Kind == yaml.ScalarNode {
			list = append(list, entry{key.Value, n.Content[i].Line, n.Content[i+1]})
		}
	}
	return append(list, deeper...)
}

func isSecret(tag reflect.StructTag) bool { return tag.Get("secret") != "" }

// resolve returns what an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // an anchor is never on an alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kind names what a node is, for people.
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
	return strconv.Quote(cut(n.Value))
}

// cut keeps a message from growing with what it is about.
func cut(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

func join(path, key string) string {
	return strings.TrimPrefix(path+"."+key, ".")
}

// fieldOf returns the field of struct type t for a key of the file.
func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if name := f.Tag.Get("yaml"); name != "" && name == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}
