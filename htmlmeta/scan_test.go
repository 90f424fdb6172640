package htmlmeta

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"

	"robotsgate/internal/gatetest"
)

// TestArchives checks Scan against testdata/*.txtar. Each archive has a page and the
// wanted result, as lines "name = content", "link rel type href" or "partial: why". It may have options:
// the two header fields, the charset and the coding in which the page is sent, a byte
// order mark before it, padding after it, and the limit.
func TestArchives(t *testing.T) { gatetest.Archives(t, "*.txtar", archive) }

func archive(t *testing.T, ar *txtar.Archive) {
	parts := make(map[string]string)
	for _, f := range ar.Files {
		parts[f.Name] = string(f.Data)
	}
	options := pairs(parts["options"])
	body := send(t, strings.TrimSuffix(parts["page"], "\n"), options)
	o := Options{ContentType: options["Content-Type"], ContentEncoding: options["Content-Encoding"]}
	if o.ContentType == "" {
		o.ContentType = "text/html"
	}
	o.MaxBytes, _ = strconv.Atoi(options["limit"])
	want := strings.TrimSpace(parts["want"])
	for _, r := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body))} {
		res, err := Scan(r, o)
		if err != nil {
			t.Error(err)
		}
		if got := describe(res); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

func pairs(s string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(s) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
		m[k] = v
	}
	return m
}

func describe(res Result) string {
	var b strings.Builder
	for _, m := range res.Metas {
		fmt.Fprintf(&b, "%s = %s\n", m.Name, m.Content)
	}
	for _, l := range res.Links {
		fmt.Fprintf(&b, "link %q %q %s\n", l.Rel, l.Type, l.Href)
	}
	if !res.Complete {
		fmt.Fprintf(&b, "partial: %s\n", res.Why)
	}
	return strings.TrimSpace(b.String())
}

// send encodes a page as its options say.
func send(t *testing.T, page string, options map[string]string) []byte {
	b := []byte(page)
	switch label := options["charset"]; label {
	case "":
	case "utf-16le":
		b, _ = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes(b)
	case "utf-16be":
		b, _ = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().Bytes(b)
	default:
		e, _ := charset.Lookup(label)
		var err error
		if b, err = e.NewEncoder().Bytes(b); err != nil {
			t.Fatal(err)
		}
	}
	if bom, ok := options["mark"]; ok {
		mark, err := strconv.Unquote(bom)
		if err != nil {
			t.Fatal(err)
		}
		b = append([]byte(mark), b...)
	}
	for coding := range strings.SplitSeq(options["coding"], ", ") {
		b = compress(t, coding, b)
	}
	if pad, err := strconv.Unquote(options["pad"]); err == nil {
		b = append(b, pad...)
	}
	if cut, err := strconv.Atoi(options["cut"]); err == nil {
		b = b[:len(b)-cut]
	}
	return b
}

// A flusher is a writer of any of the codings.
type flusher interface {
	io.WriteCloser
	Flush() error
}

func newWriter(t testing.TB, coding string, w io.Writer) flusher {
	var f flusher
	var err error
	switch coding {
	case "gzip":
		f = gzip.NewWriter(w)
	case "zlib":
		f = zlib.NewWriter(w)
	case "flate":
		f, err = flate.NewWriter(w, 6)
	case "br":
		f = brotli.NewWriter(w)
	case "zstd":
		f, err = zstd.NewWriter(w)
	default:
		t.Fatalf("no coding %q", coding)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func compress(t testing.TB, coding string, b []byte) []byte {
	if coding == "" {
		return b
	}
	var buf bytes.Buffer
	w := newWriter(t, coding, &buf)
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestContentType: of several types the one that is most like a page's counts.
func TestContentType(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, NoType},
		{[]string{""}, NoType},
		{[]string{"text"}, NoType},
		{[]string{"*/*"}, NoType},
		{[]string{"text/html charset=a"}, NoType},
		{[]string{"*/*, image/png"}, "image/png"},
		{[]string{"image/png", "application/unknown"}, "application/unknown"},
		{[]string{"image/png, application/rss+xml, unknown/unknown"}, "unknown/unknown"},
		{[]string{"text/plain, text/HTML; charset=b"}, "text/HTML; charset=b"},
		{[]string{"image/png", "text/plain"}, "image/png"},
		{[]string{"text/html;charset=a", "text/html;charset=b"}, "text/html;charset=a"},
		{[]string{"text/plain", "text/html;charset=b"}, "text/html;charset=b"},
	} {
		if got := ContentType(c.lines); got != c.want {
			t.Errorf("%q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

// TestNoTree checks that nothing is cut out, so that no tree is built, of a head without a meta that has a name
// and without a link to a licence.
func TestNoTree(t *testing.T) {
	for _, page := range []string{
		"",
		"<!doctype html><html><head><title>A page</title><link rel=x><script>'<meta name=a content=b>'</script></head><body>" + noindex,
		"<head><meta charset=utf-8><meta property=og:site_name content='a name=x'><meta content=a><noscript><link></noscript><template>" + noindex + "</template></head><p>",
		"<title><meta name=a content=b></title><!-- <meta name=a content=b> --><body>",
	} {
		var h head
		if err := h.scan(strings.NewReader(page)); err != nil || len(h.cut) > 0 {
			t.Errorf("%q: cut %q; %v", page, h.cut, err)
		}
	}
}
