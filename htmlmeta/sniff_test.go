package htmlmeta

import (
	"bytes"
	"strings"
	"testing"
)

// TestSniff: a body without a type is a page if it begins as one (WHATWG MIME Sniffing, section 7.1).
func TestSniff(t *testing.T) {
	const meta = "<meta name=a content=b>"
	for _, c := range []struct {
		body    string
		metas   int
		why     string
		unknown bool
	}{
		{body: "<!DOCTYPE html>" + meta, metas: 1},
		{body: "\n\t <HTML >" + meta, metas: 1},
		{body: "<!-- x-->" + meta, metas: 1},
		{body: "<title >x</title>" + meta, metas: 1},
		{body: "<html>" + meta + strings.Repeat("x", 1000), metas: 1},
		{body: ""},
		{body: "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><meta name='a' content='b'/></head></html>", metas: 1},
		{body: "<?xml version='1.0'?><rss/>" + meta},
		{body: "<htmlx>" + meta, why: "type", unknown: true},
		{body: meta, why: "type", unknown: true},
		{body: "text" + meta, why: "type", unknown: true},
		{body: "\xff\xfe<\x00h\x00", why: "type", unknown: true},
		{body: "\x00\x01", why: "type", unknown: true},
		{body: "\x89PNG\x0d\x0a\x1a\x0a", why: "type"},
		{body: "%PDF-1.7", why: "type"},
	} {
		for _, coding := range []string{"", "gzip"} {
			body := []byte(c.body)
			if coding != "" {
				body = compress(t, coding, body)
			}
			res, err := Scan(bytes.NewReader(body), Options{ContentType: NoType, ContentEncoding: coding})
			if err != nil || len(res.Metas) != c.metas || res.Why != c.why || res.Unknown != c.unknown || res.Complete != (c.why == "") {
				t.Errorf("%.40q, %s: got %+v, %v", c.body, coding, res, err)
			}
		}
	}
}
