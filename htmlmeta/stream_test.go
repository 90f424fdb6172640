package htmlmeta

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const noindex = `<!doctype html><head><meta name=robots content=noindex>`

// A stalled connection delivers its parts one by one and then blocks, which Read
// reports as errStalled.
type stalled struct {
	parts [][]byte
}

var errStalled = errors.New("would wait")

func (s *stalled) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, errStalled
	}
	n := copy(p, s.parts[0])
	if s.parts[0] = s.parts[0][n:]; len(s.parts[0]) == 0 {
		s.parts = s.parts[1:]
	}
	return n, nil
}

// TestStopsAtOnce checks that Scan does not read a byte more than the token that ends the head, or the first bytes of the
// one behind it if that ends the token.
func TestStopsAtOnce(t *testing.T) {
	for _, page := range []string{
		"</head><body>",
		"</head><body class=x>",
		"</head>\n\t t",
		"</head><p>",
		"<div/>",
		"<x-element\n>",
		"<1<b",
		"</body>",
		"</br>",
		"&nbsp;<b",
		"&x<b",
		"<!--><!---><!-- --!><!----!><p>",
		"<noscript></noscript><p>",
		"<noscript><p></noscript><p>",
		"<script>if (a < b) </script><p>",
		"<script><!-- <script></script> --></script>" + strings.Repeat(" ", 5000) + "x",
		"<style>" + strings.Repeat("x", 9000) + "</style><p>",
		"<template><p></template>x",
	} {
		page = noindex + page
		r := iotest.OneByteReader(&stalled{[][]byte{[]byte(page)}})
		res, err := Scan(r, Options{})
		if err != nil || !res.Complete || len(res.Metas) != 1 {
			t.Errorf("%.80q: got %+v, %v", page, res, err)
		}
		r = iotest.OneByteReader(&stalled{[][]byte{[]byte(page[:len(page)-1])}})
		if res, err := Scan(r, Options{}); err != errStalled || res.Complete || len(res.Metas) != 1 || res.Why != "" {
			t.Errorf("%.80q less one: got %+v, %v", page, res, err)
		}
	}
}

// TestFlushed checks that decoders return all that a server has flushed.
func TestFlushed(t *testing.T) {
	for _, c := range []struct{ coding, field string }{
		{"gzip", "gzip"}, {"zlib", "deflate"}, {"flate", "deflate"}, {"br", "br"}, {"zstd", "zstd"},
	} {
		for _, parts := range [][]string{
			{noindex + "</head><body>"},
			{"<!doctype html>", "<head><meta name=robots content=noindex>", "</head>", "text"},
			{noindex, "<style>" + strings.Repeat("x", 100<<10), "</style>", "<p>"},
		} {
			var s stalled
			var buf bytes.Buffer
			w := newWriter(t, c.coding, &buf)
			for _, part := range parts {
				io.WriteString(w, part)
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				s.parts = append(s.parts, bytes.Clone(buf.Bytes()))
				buf.Reset()
			}
			res, err := Scan(&s, Options{ContentEncoding: c.field})
			if err != nil || !res.Complete || len(res.Metas) != 1 {
				t.Errorf("%s: got %+v, %v", c.coding, res, err)
			}
		}
	}
}

// TestReadsLittle checks that Scan leaves most of a page unread.
func TestReadsLittle(t *testing.T) {
	for _, coding := range []string{"", "gzip", "br", "zstd"} {
		// Text that compresses little.
		var body strings.Builder
		for i := range 200_000 {
			body.WriteByte('a' + byte(i*i%31+i%7)%26)
		}
		page := compress(t, coding, []byte(noindex+"</head><body>"+body.String()))
		r := bytes.NewReader(page)
		if res, err := Scan(r, Options{ContentEncoding: coding}); err != nil || !res.Complete {
			t.Errorf("%s: got %+v, %v", coding, res, err)
		}
		if read := len(page) - r.Len(); read > 4<<10 && coding == "" || read > 128<<10 {
			t.Errorf("%s: %d of %d bytes were read", coding, read, len(page))
		}
	}
}

type slowError struct{}

func (slowError) Error() string { return "slow" }
func (slowError) Timeout() bool { return true }

// TestReaderError checks that metas before an error are returned, with the error of
// the reader itself.
func TestReaderError(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		err error
		why string
	}{
		{broken, ""}, {slowError{}, "timeout"}, {os.ErrDeadlineExceeded, "timeout"},
		{context.DeadlineExceeded, "timeout"}, {io.ErrUnexpectedEOF, ""},
	} {
		for _, coding := range []string{"", "gzip", "br", "zstd"} {
			page := compress(t, coding, []byte(noindex+"<title>"))
			if coding != "" {
				// Flushed, so that the meta comes before the error.
				var buf bytes.Buffer
				w := newWriter(t, coding, &buf)
				io.WriteString(w, noindex)
				w.Flush()
				page = buf.Bytes()
			}
			r := io.MultiReader(bytes.NewReader(page), iotest.ErrReader(c.err))
			res, err := Scan(r, Options{ContentEncoding: coding})
			if !errors.Is(err, c.err) || res.Complete || res.Why != c.why || len(res.Metas) != 1 {
				t.Errorf("%s, %v: got %+v, %v", coding, c.err, res, err)
			}
		}
	}
}

// TestErrorWithData checks that bytes returned together with an error are read.
func TestErrorWithData(t *testing.T) {
	broken := errors.New("broken")
	for _, page := range []string{noindex + "</head> x", noindex + "\x1b$B</x", noindex + "<title>x</title><p><"} {
		for _, contentType := range []string{"text/html; charset=utf-8", "text/html; charset=iso-2022-jp"} {
			r := iotest.DataErrReader(io.MultiReader(strings.NewReader(page[:9]), strings.NewReader(page[9:]), iotest.ErrReader(broken)))
			res, err := Scan(r, Options{ContentType: contentType})
			if err != nil || !res.Complete || len(res.Metas) != 1 {
				t.Errorf("%q as %s: got %+v, %v", page, contentType, res, err)
			}
		}
	}
}

// TestHostile scans pages that are made to be slow or large. Each takes some
// hundredths of a second. A quadratic scan would exceed the bound, a linear one does
// not, even on a busy machine.
func TestHostile(t *testing.T) {
	const (
		size  = 256 << 10
		bound = 10 * time.Second
	)
	fill := func(head, unit string) string {
		return head + strings.Repeat(unit, (size-len(head))/len(unit)+1)
	}
	attributes := func(head string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < size; i++ {
			b.WriteString(" a")
			b.WriteString(strings.Repeat("b", i%5))
			for n := i; n > 0; n /= 26 {
				b.WriteByte('a' + byte(n%26))
			}
		}
		return b.String()
	}
	for name, page := range map[string]string{
		"attributes":        attributes("<meta name=robots content=noindex"),
		"html attributes":   fill(attributes("<html")[:size/2]+">", "<html x>"),
		"many attributes":   fill(attributes("<html")[:1<<10]+">", "<link x>"),
		"noscript metas":    fill("", "<noscript><meta name=a content=b></noscript>"),
		"metas":             fill("", "<meta name=a content=b>"),
		"noscripts":         fill("", "<noscript>"),
		"noscript pairs":    fill("", "<noscript></noscript>"),
		"noscript titles":   fill("", "<noscript><title></title>"),
		"templates":         fill("", "<template>"),
		"template pairs":    fill("", "<template></template>"),
		"deep templates":    fill("<template>", "<div>"),
		"formatting":        fill("<template>", "<a><b><i><p>"),
		"foreign":           fill("<template>", "<svg><desc>"),
		"foreign ends":      fill("<template><svg>", "</svg>"),
		"comment":           fill("<!--", "- "),
		"comments":          fill("", "<!---->"),
		"white space":       fill("", " "),
		"references":        fill("", "&#32;"),
		"unfinished":        fill("", "&"),
		"scripts":           fill("", "<script></script>"),
		"hidden scripts":    fill("", "<script><!----></script>"),
		"escaped":           fill("<script><!--", "<script></script>"),
		"styles":            fill("", "<style></style>"),
		"almost ends":       fill("<style>", "</styl"),
		"one token":         fill("<meta name=robots content='", "x"),
		"less than":         fill("<title>", "<"),
		"noscript, comment": fill("<noscript><!--", "x"),
		"doctype":           fill("<!doctype ", "x"),
		"tag name":          fill("<", "x"),
		"end tag":           fill("</", "x "),
	} {
		for _, o := range []Options{
			{MaxBytes: size},
			{ContentType: "text/html; charset=iso-2022-jp", MaxBytes: size / 8},
		} {
			began := time.Now()
			res, err := Scan(strings.NewReader(page), o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took > bound {
				t.Errorf("%s as %q: %v for %d bytes, %d metas", name, o.ContentType, took, res.Bytes, len(res.Metas))
			}
			if res.Bytes > size {
				t.Errorf("%s: %d bytes were read", name, res.Bytes)
			}
		}
		began := time.Now()
		if _, err := Scan(iotest.OneByteReader(strings.NewReader(page)), Options{MaxBytes: size / 4}); err != nil {
			t.Errorf("%s, dripping: %v", name, err)
		}
		if took := time.Since(began); took > bound {
			t.Errorf("%s, dripping: %v", name, took)
		}
	}
}

// TestBomb checks that the limit holds for a small body that decodes to a large
// page, also if it is encoded twice.
func TestBomb(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd"} {
		bomb := compress(t, coding, []byte("<title>"+strings.Repeat("x", 8<<20)))
		res, err := Scan(bytes.NewReader(bomb), Options{ContentEncoding: coding})
		if err != nil || res.Why != "limit" || res.Bytes != DefaultMaxBytes {
			t.Errorf("%s: got %+v, %v", coding, res, err)
		}
		bomb = compress(t, coding, bomb)
		res, err = Scan(bytes.NewReader(bomb), Options{ContentEncoding: coding + "," + coding})
		if err != nil || res.Why != "limit" || res.Bytes != DefaultMaxBytes {
			t.Errorf("%s twice: got %+v, %v", coding, res, err)
		}
	}
}
