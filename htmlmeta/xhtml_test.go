package htmlmeta

import (
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestXMLSoup compares many well-formed pages with a reader of the whole page that
// knows namespaces.
func TestXMLSoup(t *testing.T) {
	for seed := range gatetest.Rounds(5000) {
		s := xmlSoup{Rand: rand.New(rand.NewPCG(uint64(seed), 11))}
		page := s.page()
		want, err := wholeXML(page)
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		got, _, _, whole := xmlHead(strings.NewReader(page), false)
		if !slices.Equal(got, want) || !whole {
			t.Fatalf("%s: got %q and %v, the whole page has %q", page, got, whole, want)
		}
	}
}

// TestXHTMLIsCut reads a page in which the head ends at once in HTML, and after the
// limit in XML.
func TestXHTMLIsCut(t *testing.T) {
	const start = "<html xmlns='http://www.w3.org/1999/xhtml'><head><x:y xmlns:x='z'/>"
	const page = start + "<meta name='robots' content='noindex'/></head><body/></html>"
	for _, limit := range []int{len(start), len(page) - 1} {
		res, err := Scan(strings.NewReader(page), Options{ContentType: "application/xhtml+xml", MaxBytes: limit})
		if complete := limit > len(start); err != nil || res.Complete != complete || (len(res.Metas) > 0) != complete {
			t.Errorf("of %d bytes: got %+v, %v", limit, res, err)
		}
	}
}

// wholeXML returns the metas of the first head in the root, by namespace.
func wholeXML(page string) (metas []Meta, err error) {
	d := xml.NewDecoder(strings.NewReader(page))
	var path []string // of the HTML elements that are open, others are ""
	heads := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			return metas, nil
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := ""
			if e.Name.Space == xhtmlNamespace {
				name = e.Name.Local
			}
			path = append(path, name)
			if len(path) == 2 && name == "head" {
				heads++
			}
			where := strings.Join(path, "/")
			if heads == 1 && (where == "html/head/meta" || where == "html/head/noscript/meta") {
				metas = append(metas, Meta{e.Attr[0].Value, e.Attr[1].Value})
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

type xmlSoup struct {
	*rand.Rand
	metas  int
	prefix string // of XHTML
}

func (s *xmlSoup) pick(of ...string) string { return of[s.IntN(len(of))] }

func (s *xmlSoup) page() string {
	s.prefix = s.pick("", "", "h:")
	h := s.prefix
	return fmt.Sprintf("<%[1]shtml xmlns%[2]s='%[3]s' xmlns:x='%[4]s'>%[5]s<%[1]shead>%[6]s</%[1]shead><%[1]sbody>%[7]s</%[1]sbody></%[1]shtml>",
		h, strings.TrimSuffix(":"+h, ":"), xhtmlNamespace, s.pick("urn:x", xhtmlNamespace),
		s.pick("", "<!-- x -->", "<y:head xmlns:y='urn:y'>"+s.meta()+"</y:head>"), s.elements(0), s.meta())
}

func (s *xmlSoup) elements(depth int) string {
	var b strings.Builder
	for range s.IntN(7) {
		name := s.pick(s.prefix, s.prefix, s.prefix, "x:") +
			s.pick("title", "script", "noscript", "noscript", "template", "svg", "head", "head", "p")
		switch k := s.IntN(10); {
		case k < 4:
			b.WriteString(s.meta())
		case k < 5:
			b.WriteString(s.pick("<!-- <meta> -->", "<![CDATA[ </head> ]]>", "<?x?>", "\n", "text"))
		case k < 7 || depth == 4:
			b.WriteString("<" + name + s.binding() + "/>")
		default:
			b.WriteString("<" + name + s.binding() + ">" + s.elements(depth+1) + "</" + name + ">")
		}
	}
	return b.String()
}

func (s *xmlSoup) meta() string {
	s.metas++
	name := s.pick(s.prefix, s.prefix, "x:") + "meta"
	return fmt.Sprintf("<%s name='a' content='%d'%s", name, s.metas, s.binding()) + s.pick("/>", "></"+name+">")
}

// binding returns an attribute that may bind a prefix to another namespace.
func (s *xmlSoup) binding() string {
	return s.pick("", "", "", "", " xmlns:x='urn:x'", " xmlns:x='"+xhtmlNamespace+"'", " xmlns:h='"+xhtmlNamespace+"'")
}
