package htmlmeta

import "golang.org/x/net/html/atom"

// A template tracks the open elements in a <template> of the head, as far as
// they decide which </template> closes it. The content of a template is a tree
// apart from the head's, so no meta in it counts.
//
// Templates may be nested, and may hold foreign content: in <svg> and <math> a
// <template> is an ordinary element, and no element is raw text.
type template struct {
	stack []element
}

type element uint8

const (
	htmlTemplate    element = iota
	foreignTemplate         // <svg><template>
	foreignRoot             // svg or math
	integration             // an element of foreign content that holds HTML
)

func (t *template) open() bool { return len(t.stack) > 0 }

// foreign reports whether the current node is a foreign element.
func (t *template) foreign() bool {
	return t.open() && (t.top() == foreignRoot || t.top() == foreignTemplate)
}

// start handles a start tag and reports whether the element is one of HTML, so
// that its content may be raw text.
func (t *template) start(name atom.Atom, selfClosing bool) bool {
	for t.foreign() && breaksOut[name] {
		t.pop()
	}
	foreign := t.foreign()
	switch name {
	case atom.Template:
		if !foreign {
			t.push(htmlTemplate)
		} else if !selfClosing {
			t.push(foreignTemplate)
		}
	case atom.Svg, atom.Math:
		if !selfClosing {
			t.push(foreignRoot)
		}
	case atom.Foreignobject, atom.ForeignObject, atom.Desc, atom.Title:
		if foreign && !selfClosing {
			t.push(integration)
		}
	}
	return !foreign
}

// end handles an end tag.
func (t *template) end(name atom.Atom) {
	switch name {
	case atom.Template:
		// Closes every element in the innermost template (13.2.6.4.4).
		for t.open() {
			if e := t.pop(); e == htmlTemplate || e == foreignTemplate {
				return
			}
		}
	case atom.Svg, atom.Math:
		for t.foreign() {
			if t.pop() == foreignRoot {
				return
			}
		}
	case atom.Foreignobject, atom.ForeignObject, atom.Desc, atom.Title:
		if t.top() == integration {
			t.pop()
		}
	}
}

func (t *template) push(e element) { t.stack = append(t.stack, e) }

func (t *template) top() element { return t.stack[len(t.stack)-1] }

func (t *template) pop() element {
	e := t.top()
	t.stack = t.stack[:len(t.stack)-1]
	return e
}

// breaksOut lists the start tags that end foreign content (13.2.6.5).
var breaksOut = map[atom.Atom]bool{
	atom.B: true, atom.Big: true, atom.Blockquote: true, atom.Body: true, atom.Br: true,
	atom.Center: true, atom.Code: true, atom.Dd: true, atom.Div: true, atom.Dl: true, atom.Dt: true,
	atom.Em: true, atom.Embed: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true,
	atom.H5: true, atom.H6: true, atom.Head: true, atom.Hr: true, atom.I: true, atom.Img: true,
	atom.Li: true, atom.Listing: true, atom.Menu: true, atom.Meta: true, atom.Nobr: true,
	atom.Ol: true, atom.P: true, atom.Pre: true, atom.Ruby: true, atom.S: true, atom.Small: true,
	atom.Span: true, atom.Strike: true, atom.Strong: true, atom.Sub: true, atom.Sup: true,
	atom.Table: true, atom.Tt: true, atom.U: true, atom.Ul: true, atom.Var: true,
}
