package htmlmeta

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// ordinaryPage has some metas, links and scripts, then a long body.
func ordinaryPage() []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<title>A page</title>\n" +
		`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n" +
		`<meta name="description" content="What the page is about, in a sentence or two.">` + "\n" +
		`<meta name="robots" content="noarchive, max-snippet: 50">` + "\n")
	for range 12 {
		b.WriteString(`<link rel="stylesheet" href="/assets/some-stylesheet-with-a-hash-0123456789abcdef.css">` + "\n")
		b.WriteString(`<script async src="/assets/some-script-with-a-hash-0123456789abcdef.js"></script>` + "\n")
	}
	b.WriteString("<script>" + strings.Repeat("window.x = window.x || {};\n", 60) + "</script>\n</head>\n<body>\n")
	for range 1500 {
		b.WriteString("<p class=text>Some text with a <a href=/link>link</a> and more of the same.</p>\n")
	}
	return b.Bytes()
}

// manyMetas has many metas, of which few have a name.
func manyMetas() []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page</title>\n")
	for i := range 20 {
		fmt.Fprintf(&b, "<link rel=\"stylesheet\" href=\"/assets/%d.css\"><meta property=\"og:tag\" content=\"value %d\">\n", i, i)
	}
	b.WriteString("<meta name=\"robots\" content=\"max-snippet:20, noarchive\"><meta name=\"description\" content=\"for measuring\">\n</head><body>\n")
	for range 400 {
		b.WriteString("<p>Some words in a paragraph, <a href=\"/x\">a link</a>, and more words after it.</p>\n")
	}
	return b.Bytes()
}

func inlineStyle(n int) []byte {
	return []byte("<head><style>" + strings.Repeat(".a > .b { color: red }\n", n/23) +
		`</style><meta name=robots content=noindex></head><body>` + strings.Repeat("<p>text", 1000))
}

func BenchmarkScan(b *testing.B) {
	page := ordinaryPage()
	for _, bb := range []struct {
		name, encoding string
		body           []byte
	}{
		{"Ordinary", "", page},
		{"ManyMetas", "", manyMetas()},
		{"Gzip", "gzip", compress(b, "gzip", page)},
		{"Brotli", "br", compress(b, "br", page)},
		{"Zstd", "zstd", compress(b, "zstd", page)},
		{"NoMeta", "", []byte("<!doctype html><head><title>x</title><link rel=x></head><body>" + strings.Repeat("<p>text", 1000))},
		{"Style300K", "", inlineStyle(300 << 10)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			r := bytes.NewReader(nil)
			for b.Loop() {
				r.Reset(bb.body)
				res, err := Scan(r, Options{ContentType: "text/html; charset=utf-8", ContentEncoding: bb.encoding})
				if err != nil || !res.Complete {
					b.Fatal(res, err)
				}
			}
		})
	}
}
