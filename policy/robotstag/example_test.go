package robotstag_test

import (
	"fmt"

	"robotsgate/policy/robotstag"
)

func ExampleParseHeader() {
	tags := robotstag.ParseHeader(
		[]string{"*;nosnippet, ExampleBot;noindex"},
		[]string{"max-snippet: 20, ExampleBot: max-snippet: -1"},
	)
	for _, r := range tags.For("ExampleBot") {
		fmt.Println(r, r.Source, r.Scope)
	}
	// Output:
	// nosnippet robots-tag *
	// noindex robots-tag ExampleBot
	// max-snippet=20 x-robots-tag *
	// max-snippet=-1 x-robots-tag ExampleBot
}

func ExampleEffective() {
	tags := robotstag.Union(
		robotstag.ParseHeader(nil, []string{"max-snippet: 20, unavailable_after: 25 Jun 2030 15:00:00 PST"}),
		robotstag.ParseMeta("robots", "none"),
		robotstag.ParseMeta("ExampleBot", "index, max-snippet: -1"),
	)
	fmt.Println(robotstag.Effective(tags.For("ExampleBot")))
	// Output: [max-snippet=20 nofollow noindex unavailable_after=2030-06-25T23:00:00Z]
}
