package lint_test

import (
	"fmt"

	"robotsgate/policy/robotstxt/lint"
)

func ExampleCheck() {
	robots := "User-agent: *\nDisalow: /private/\nDisallow: search\n"
	for _, f := range lint.Check([]byte(robots), 0) {
		fmt.Printf("line %d: %s\n", f.Line, f.Text)
	}
	// Output:
	// line 3: "search" begins with neither / nor *, so the rule never matches; with one of them in front it would deny URLs
	// line 2: "Disalow" is read as Disallow, but not by every crawler; write "Disallow: /private/"
}

func ExampleFix() {
	robots := "User-agent: *\nDisalow: /private/ # old\nDisallow: search\n"
	fmt.Printf("%s", lint.Fix([]byte(robots)))
	// Output:
	// User-agent: *
	// Disallow: /private/ # old
	// Disallow: search
}
