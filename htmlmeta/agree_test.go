package htmlmeta

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"robotsgate/internal/gatetest"
)

// wholePage returns what goquery finds in the head of the whole page.
func wholePage(page string, scripting bool) (found Result, ok bool) {
	root, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(scripting))
	if err != nil {
		return found, false // nested too deep for the parser
	}
	var tags strings.Builder
	for _, tag := range goquery.NewDocumentFromNode(root).Find("head > meta, head > link, head > noscript > meta, head > noscript > link").Nodes {
		html.Render(&tags, tag)
	}
	found.find([]byte(tags.String()))
	return found, true
}

// agree asserts that Scan finds what is in the head of the whole page, read with scripting and without, and nothing
// else, however the page arrives. It returns the number of links.
func agree(t *testing.T, page string, chunk uint64) (links int) {
	on, ok := wholePage(page, true)
	off, ok2 := wholePage(page, false)
	// The parser takes bytes as they are, where Scan decodes them first.
	if !ok || !ok2 || !countsTemplates(page) || !utf8.ValidString(page) || strings.ContainsAny(page, "\x00\ufffd") {
		return 0
	}
	for _, r := range []io.Reader{
		strings.NewReader(page),
		iotest.OneByteReader(strings.NewReader(page)),
		iotest.DataErrReader(&chunked{strings.NewReader(page), rand.New(rand.NewPCG(chunk, 1))}),
	} {
		res, err := Scan(r, Options{ContentType: "text/html; charset=utf-8"})
		if err != nil || !res.Complete {
			t.Fatalf("%q: got %+v, %v", page, res, err)
		}
		if !contains(res.Metas, on.Metas) || !contains(res.Links, on.Links) || !contains(res.Metas, off.Metas) || !contains(res.Links, off.Links) ||
			!contains(slices.Concat(on.Metas, off.Metas), res.Metas) || !contains(slices.Concat(on.Links, off.Links), res.Links) {
			t.Fatalf("%q: got %+v, the whole page has %+v, and %+v without scripting", page, res, on, off)
		}
	}
	return len(on.Links)
}

func contains[E comparable](all, some []E) bool {
	return !slices.ContainsFunc(some, func(e E) bool { return !slices.Contains(all, e) })
}

// countsTemplates reports whether the parser ends the templates of a page where Scan does, which counts their tags. In
// foreign content and tables the parser ignores some of these tags.
func countsTemplates(page string) bool {
	lower := strings.ToLower(page)
	return !strings.Contains(lower, "<template") ||
		!slices.ContainsFunc([]string{"<svg", "<math", "<select", "<col", "<frameset"}, func(s string) bool { return strings.Contains(lower, s) })
}

// chunked returns reads of random size.
type chunked struct {
	r   io.Reader
	rnd *rand.Rand
}

func (c *chunked) Read(p []byte) (int, error) {
	return c.r.Read(p[:min(len(p), 1+c.rnd.IntN(9))])
}

var soup = []string{
	"<!doctype html>", "<html>", "<html lang=en>", "<head>", "</head>", "<head/>", "<body>", "</body>", "</html>", "<br>", "</br>", "</p>",
	`<meta name=a content=1>`, `<META NAME=b CONTENT="2">`, `<meta content=3 name=c>`, `<meta name=d content='4'/>`, `<meta charset=utf-8>`, "<meta name=e>",
	"<title>", "</title>", "<script>", "</script>", "<style>", "</style>", "<noscript>", "</noscript>", "<noframes>", "</noframes>",
	"<template>", "</template>", "<link rel=x>", `<link rel="a license" type=t href="u">`, "<link href=v rel=LICENSE>", "<base href=/>",
	"<basefont>", "<bgsound>", "<div>", "</div>", "<img src=x>", "<svg>", "</svg>",
	"<iframe>", "</iframe>", "<textarea>", "</textarea>", "<x-foo>", "<plaintext>", "<frameset>", "<table>", "<tr>", "<p>", "<a>", "</a>",
	" ", "\n", "\t\r\n", "x", "&nbsp;", "&#32;", "&#", "&", "<", "</", "< ", "<!", "<!-- ", "-->", "--!>", "<!-->", "<![CDATA[", "]]>", "<?xml", ">", "/", "\"", "'", "=", " name=", " content=",
	"<select>", "</select>", "<option>", "<math>", "<title/>", "<script/>",
	"<script>", "<script", "</script", "<script><!--", "--", "->", "</scrip", "</style", "<!--",
}

// TestTokenSoup compares many random pages made of the tokens of heads.
func TestTokenSoup(t *testing.T) {
	for seed := range gatetest.Rounds(10000) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 7))
		var b strings.Builder
		for range 2 + rnd.IntN(14) {
			b.WriteString(soup[rnd.IntN(len(soup))])
		}
		agree(t, b.String(), uint64(seed))
	}
}

// metaSoup has the parts of metas.
var metaSoup = []string{
	"<meta", "<META ", "<meta/", " name=", " name", " NAME = ", " content=", "content", "\tcontent\n=\r\n", " name='", " content=\"", "robots", "noindex", "a",
	"'", "\"", "\"", ">", ">", "/", "/>", " ", "\r", "\r\n", "=", "<", "&amp;", "&lt", "&quot;", "&copy", "&copy=", "&#78;", "&#x4e", "&#0;", "\x00", "\ufffd", "é", "\xff", "&notit;",
	"<noscript>", "</noscript>", "<title>", "</title>", "<meta name=robots content=noindex>", "xmlns:a=b", " a:name=b",
}

// linkSoup has the parts of links, beside those in metaSoup.
var linkSoup = []string{
	"<link", "<LINK ", " rel=license", " rel=license", " rel=", " rel", " REL = ", " type=", " type=t/x", " href=a", " href=a", " href='b' ", " href=\"c\"", " rel='a License' ", " rel=\"",
	"license", "licen&#115;e", "licenſe", "license\n", "\u00a0license", "https://a/", ">", "\"",
}

// TestLinkSoup compares many random pages made of the parts of links.
func TestLinkSoup(t *testing.T) {
	found := 0
	for seed := range gatetest.Rounds(12000) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 13))
		var page strings.Builder
		page.WriteString("<link")
		for range 2 + rnd.IntN(8) {
			page.WriteString(linkSoup[rnd.IntN(len(linkSoup))])
			if rnd.IntN(8) == 0 {
				page.WriteString(metaSoup[rnd.IntN(len(metaSoup))])
			}
		}
		page.WriteString(">")
		found += agree(t, page.String(), uint64(seed))
	}
	if found < gatetest.Rounds(400) {
		t.Errorf("only %d pages had links to licences", found)
	}
}

// FuzzScan asserts that Scan, which reads a part of the page, finds the metas that
// goquery finds in the head of the whole page.
func FuzzScan(f *testing.F) {
	f.Add("<!doctype html><head><meta name=robots content=noindex></head><body>x", uint64(1))
	f.Add("<head><noscript><img></noscript><meta name=a content=b>", uint64(2))
	f.Add("<noscript><style></noscript><meta name=a content=b></style></noscript>", uint64(3))
	f.Add("<template><div><template></div></template><meta name=a content=b></template><meta name=c content=d>", uint64(4))
	f.Add("<noscript><link rel=license href=a></noscript><link rel='x license' type=t href=' b '><body><link rel=license href=c>", uint64(5))
	f.Fuzz(func(t *testing.T, page string, chunk uint64) {
		// Without scripting a comment or style may hide a </noscript>, at which Scan and a reader with scripting end it.
		if _, inside, _ := strings.Cut(strings.ToLower(page), "<noscript"); strings.Count(inside, "<") > strings.Count(inside, "<meta ")+strings.Count(inside, "<link ")+1 {
			t.Skip()
		}
		agree(t, page, chunk)
	})
}

// FuzzCodings asserts that no body, whatever its coding and charset, takes
// Scan past its limit.
func FuzzCodings(f *testing.F) {
	codings := []string{"gzip", "br", "zstd", "deflate", "br, gzip", "", "gzip, gzip"}
	charsets := []string{"", "; charset=utf-16", "; charset=iso-2022-jp", "; charset=gb18030", "; charset=x"}
	for i, coding := range []string{"gzip", "br", "zstd", "zlib"} {
		f.Add(compress(f, coding, []byte(noindex+strings.Repeat(" x", 500))), uint8(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, coding, charset uint8) {
		for _, contentType := range []string{"text/html", "application/xhtml+xml"} {
			res, err := Scan(bytes.NewReader(body), Options{
				ContentType:     contentType + charsets[int(charset)%len(charsets)],
				ContentEncoding: codings[int(coding)%len(codings)],
				MaxBytes:        1000,
			})
			if err != nil || res.Bytes > 1000 || res.Complete != (res.Why == "") {
				t.Errorf("got %+v, %v", res, err)
			}
		}
	})
}
