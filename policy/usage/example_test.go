package usage_test

import (
	"fmt"
	"net/http"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

func ExampleRead() {
	robots := robotstxt.Parse([]byte("User-agent: *\nContent-Usage: train-ai=n, search=y\nLicense: https://site.test/license.xml\n"), 0)
	verdict := robots.Decide("/page", "ExampleBot")
	stated := usage.Read(&usage.Input{
		Robots: robots, Group: verdict.Group, Path: "/page", Denied: !verdict.Allowed,
		Header: http.Header{"Tdm-Reservation": {"1"}},
	})
	for _, p := range stated.Preferences {
		fmt.Println(p.Category, p.Value(), p.Source, p.In, p.Line)
	}
	fmt.Println(stated.Licenses[0].URL)
	by, purpose, reserved := stated.Reserved([]usage.Purpose{usage.AIInput, usage.Search}, "")
	fmt.Println(reserved, purpose, by.Source)
	// Output:
	// train-ai n content-usage robots 2
	// search y content-usage robots 2
	// tdm n tdmrep header 0
	// https://site.test/license.xml
	// true ai-input tdmrep
}

func ExampleStated_Values() {
	stated := usage.Read(&usage.Input{Path: "/", Header: http.Header{
		"Content-Usage":  {"train-ai=y, search=y"},
		"Content-Signal": {"ai-train=no"},
	}})
	fmt.Println(stated.Values())
	// Output: map[search:y train-ai:n]
}

func ExampleParseTDMRep() {
	file, err := usage.ParseTDMRep([]byte(`[{"location": "/free/", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/free/a", "/b"} {
		fmt.Println(path, usage.Read(&usage.Input{Path: path, TDMRep: file}).Values())
	}
	// Output:
	// /free/a map[tdm:y]
	// /b map[tdm:n]
}
