package robotstxt_test

import (
	"fmt"

	"robotsgate/policy/canonical"
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
		v := f.Decide(canonical.PathOf(url), "ExampleBot")
		fmt.Println(v.Allowed, v.Reason, v.Rule.Line, v.Rule)
	}
	// Output:
	// false rule 3 Disallow: /private/
	// true rule 4 Allow: /private/*.html$
	// true no-match 0 Disallow:
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
