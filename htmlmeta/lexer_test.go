package htmlmeta

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestTokenEnds checks the ends of tokens that are easily misread. The metas after
// the right end count, and those before it do not.
func TestTokenEnds(t *testing.T) {
	const a, b = `<meta name=a content=1>`, `<meta name=b content=2>`
	for _, c := range []struct{ page, names string }{
		{"<!-->" + a, "a"},
		{"<!--->" + a, "a"},
		{"<!---->" + a, "a"},
		{"<!--!>" + a + "-->" + b, "b"},
		{"<!---!>" + a + "-->" + b, "b"},
		{"<!----!>" + a, "a"},
		{"<!-- --!x>" + a + "-->" + b, "b"},
		{"<!-- --!-->" + a, "a"},
		{"<!-- -!>" + a + "-->" + b, "b"},
		{"<!-- -- >" + a + "--->" + b, "b"},
		{"<!-" + a + b, "b"},
		{"<![CDATA[" + a + "]]>" + b, ""},
		{"<!doctype html '" + a + b, "b"},
		{"<?x" + a + b, "b"},
		{"</>" + a, "a"},
		{"</1" + a + b, "b"},
		{`</x a=">` + a + `">` + b, "b"},
		{`<link a=">` + a + `">` + b, "b"},
		{`<link a='>` + a + `'>` + b, "b"},
		{`<link a=x'>` + a, "a"},
		{`<link a ">` + a, "a"},
		{`<link a/=">` + a + b, "ab"},
		{`<link =">` + a + b, "ab"},
		{`<link ==">` + a + `">` + b, "b"},
		{`<link a = ">` + a + `">` + b, "b"},
		{`<link a ="x"=">` + a, "a"},

		// In foreign content "/>" ends an element, and there is CDATA.
		{"<template><svg/><p></svg><template></template></template>" + a, "a"},
		{"<template><svg><template/></svg></template>" + a, "a"},
		{"<template><svg><template / ></svg></template>" + a, "a"},
		{"<template><svg><template></svg></template>" + a, "a"},
		{"<template><svg><![CDATA[</template>" + a + "]>" + a + "]]x>" + a + "]]]></template>" + b, "b"},
		{"<template><svg><![CDAT[></template>" + b, "b"},
		{"<template><svg><!-[CDATA[></template>" + b, "b"},
		{"<template><svg><![CDATA[]></template>" + a + "]]></template>" + b, "b"},
		{"<template><noscript><style></noscript></template>" + a + "</style></noscript></template>" + b, "ba"},
		{"<template><template><noscript><!--</noscript></template></template>" + a + "--></noscript></template></template>" + b, "ba"},
		{"<template><svg><noscript></template>" + a + "</noscript></template>" + b, "ab"},
		{"<template><textarea></template>" + a + "</textarea></template>" + b, "b"},
		{"<noscript></noscript><template><noscript></template>" + a + "</noscript></template>" + b, "ab"},
		{"<template><svg><desc><title></title><style></template>" + a + "</style></template>" + b, "b"},
		{"<template><title></template>" + a + "</title></template>" + b, "b"},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.page), iotest.OneByteReader(strings.NewReader(c.page))} {
			res, err := Scan(r, Options{ContentType: "text/html; charset=utf-8"})
			var names strings.Builder
			for _, m := range res.Metas {
				names.WriteString(m.Name)
			}
			if err != nil || !res.Complete || names.String() != c.names {
				t.Errorf("%q: got %q, %+v, %v, want %q", c.page, names.String(), res, err, c.names)
			}
		}
	}
}

// TestEncodingOfAll checks that metas without a name count for guessing the
// encoding of a page that does not declare it.
func TestEncodingOfAll(t *testing.T) {
	for first, want := range map[string]string{"": "ä", "<meta property=x content=ä>": "ä", "<meta property=x content=\xe4>": "Ã¤"} {
		res, err := Scan(strings.NewReader(first+"<meta name=a content=ä>"), Options{ContentType: "text/html"})
		if err != nil || len(res.Metas) != 1 || res.Metas[0].Content != want {
			t.Errorf("after %q: got %+v, %v, want %q", first, res, err, want)
		}
	}
}
