package robotstxt_test

import (
	"fmt"

	"robotsgate/policy/robotstxt"
)

func ExampleFile_Decide() {
	f := robotstxt.Parse([]byte(`
User-agent: *
Disallow: /private/
Allow: /private/*.html$
`), 0)

	for _, url := range []string{
		"https://example.com/private/",
		"https://example.com/private/index.html",
		"https://example.com/public/",
	} {
		v := f.Decide(robotstxt.PathOf(url), "ExampleBot")
		fmt.Println(v.Allowed, v.Reason, v.Rule.Line, v.Rule)
	}
	// Output:
	// false rule 3 Disallow: /private/
	// true rule 4 Allow: /private/*.html$
	// true no-match 0 Disallow:
}

func ExampleFile_Group() {
	f := robotstxt.Parse([]byte(`
User-agent: Googlebot
Disallow: /a

User-agent: *
Crawl-delay: 10
`), 0)

	for _, tokens := range [][]string{
		{"Googlebot-Image", "Googlebot"},
		{"ExampleBot"},
	} {
		g := f.Group(tokens...)
		seconds, line, ok := g.CrawlDelay()
		fmt.Printf("%q by %q: delay %v %v %v\n", g.Name(), g.Token(), seconds, line, ok)
	}
	// Output:
	// "googlebot" by "Googlebot": delay 0 0 false
	// "*" by "": delay 10 6 true
}

// Any other field is read by its name.
func ExampleGroup_Fields() {
	f := robotstxt.Parse([]byte(`
User-agent: *
Content-Signal: ai-train=no
`), 0)

	for r := range f.Group("ExampleBot").Fields("content-signal") {
		fmt.Printf("line %d: %s is %q\n", r.Line, r.Name, r.Value)
	}
	// Output:
	// line 3: Content-Signal is "ai-train=no"
}

// Sitemap fields belong to no group (RFC 9309, section 2.2.4).
func ExampleFile_Fields() {
	f := robotstxt.Parse([]byte(`
Sitemap: https://example.com/sitemap.xml
User-agent: *
Disallow: /private/
Sitemap: https://example.com/news.xml
`), 0)

	for r := range f.Fields("Sitemap") {
		fmt.Println(r.Line, r.Value, r.InGroup)
	}
	// Output:
	// 2 https://example.com/sitemap.xml false
	// 5 https://example.com/news.xml true
}

// A crawler that may not fetch /private/ must not reach it by a path that common servers
// read as /private/.
func ExampleReadings() {
	for _, path := range []string{"/private/x", "//private/x", "/private%2Fx"} {
		fmt.Print(path)
		for _, r := range robotstxt.Readings(path) {
			fmt.Print(" ", r)
		}
		fmt.Println()
	}
	// Output:
	// /private/x
	// //private/x /private/x
	// /private%2Fx /private/x
}

func ExamplePathOf() {
	for _, url := range []string{
		"https://example.com",
		"https://example.com/a/../b?c#d",
		"example.com?q",
	} {
		fmt.Println(robotstxt.PathOf(url))
	}
	// Output:
	// /
	// /b?c
	// /?q
}
