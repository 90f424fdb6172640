package glob_test

import (
	"fmt"

	"robotsgate/policy/glob"
)

func Example() {
	below, err := glob.Host("*.Bücher.example")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(below)
	fmt.Println(below.Match("shop.xn--bcher-kva.example"), below.Match("xn--bcher-kva.example"))

	bots := glob.Text("*ExampleBot/*")
	fmt.Println(bots.Match("Mozilla/5.0 (compatible; examplebot/2.1)"))

	_, err = glob.Host("https://example.com")
	fmt.Println(err)
	// Output:
	// *.xn--bcher-kva.example
	// true false
	// true
	// a host only, without scheme, port and path
}
