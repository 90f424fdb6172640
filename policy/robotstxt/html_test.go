package robotstxt

import "testing"

// TestHTML tells pages from files with lines of a robots.txt, in any case and with anything that browsers skip.
func TestHTML(t *testing.T) {
	for body, want := range map[string]bool{
		"<!DOCTYPE html>\n<title>Just a moment...</title>": true,
		"<!doctype\thtml public>":                          true,
		"<html>":                                           true,
		"<HTML lang=en>\n<body>User-agents: all\n":         true,
		"\ufeff \r\n\t<Head>":                              true,
		"\xff\xfe<\x00h\x00t\x00m\x00l\x00>\x00":           true,
		"<!-- a comment -->\n<p>x":                         true,
		"<script src=x></script>":                          true,
		"<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC>":  true,
		"<h1>403</h1>\n":                                   true,
		"<html>\nLicense: MIT\n</html>":                    true,

		"":                                     false,
		"Just a moment...":                     false,
		"# <html>":                             false,
		"<html":                                false,
		"<htmlx>":                              false,
		"<?xml version=\"1.0\"?>\n<urlset>":    false,
		"<!doctype svg>":                       false,
		"{\"a\": \"<html>\"}":                  false,
		"User-agent: *\nDisallow: /\n<html>\n": false,
		"<!-- mine -->\nUser-agent: *\n":       false,
		"<html>\nDISALLOW : /x\n":              false,
		"<html>\nsitemap: https://a.example/s": false,
	} {
		if got := Parse([]byte(body), 0).HTML(); got != want {
			t.Errorf("%q: got %v", body, got)
		}
	}
}
