package htmlmeta_test

import (
	"fmt"
	"strings"

	"robotsgate/htmlmeta"
)

func ExampleScan() {
	page := `<!doctype html>
		<title>A page</title>
		<meta name=robots content="noindex, nofollow">
		<noscript><meta name=ExampleBot content=noarchive></noscript>
		<p>Text, and a meta too late: <meta name=robots content=nosnippet>`

	res, err := htmlmeta.Scan(strings.NewReader(page), htmlmeta.Options{ContentType: "text/html"})
	for _, m := range res.Metas {
		fmt.Printf("%s: %s\n", m.Name, m.Content)
	}
	fmt.Println(res.Complete, err)
	// Output:
	// robots: noindex, nofollow
	// ExampleBot: noarchive
	// true <nil>
}
