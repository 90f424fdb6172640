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
		{body: "<?xml version='1.0'?><rss/>", why: "type"},
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

// TestAnyXML: XML of another kind is XHTML if its root is html, which may have a prefix.
func TestAnyXML(t *testing.T) {
	for body, why := range map[string]string{
		"<html><head><meta name='a' content='b'/></head></html>":                                                            "",
		"<!--x--><h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:head><h:meta name='a' content='b'/></h:head></h:html>":   "",
		"<x:html xmlns:x='y'><x:head><x:meta name='a' content='b'/></x:head></x:html>":                                      "type",
		"<feed><html><head><meta name='a' content='b'/></head></html></feed>" + strings.Repeat("<entry/>", DefaultMaxBytes): "type",
		"<svg/>": "type",
		"":       "type",
	} {
		for _, contentType := range []string{"text/xml", "application/xml; charset=utf-8", "Image/SVG+XML"} {
			res, err := Scan(strings.NewReader(body), Options{ContentType: contentType})
			if err != nil || res.Why != why || len(res.Metas) == 0 != (why != "") || res.Bytes > 10_000 {
				t.Errorf("%.60q as %s: got %+v, %v", body, contentType, res, err)
			}
		}
	}
}
