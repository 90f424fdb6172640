package policy

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// TestUsageOf: what a response states is added to what robots.txt and tdmrep.json do.
func TestUsageOf(t *testing.T) {
	file, err := usage.ParseTDMRep([]byte(`[{"location": "*", "tdm-reservation": 1, "tdm-policy": "https://a.example/file"}]`))
	if err != nil {
		t.Fatal(err)
	}
	robots := "User-agent: *\nContent-Usage: search=n\nLicense: https://a.example/robots\n"
	for name, c := range map[string]struct {
		response usage.Input
		want     string // each preference with its place, then each licence
	}{
		"nothing":      {usage.Input{}, "search=n robots, tdm=n well-known, https://a.example/robots, https://a.example/file"},
		"a header":     {usage.Input{Header: http.Header{"Content-Usage": {"search=y"}}}, "search=n robots, search=y header, tdm=n well-known, https://a.example/robots, https://a.example/file"},
		"a robots tag": {usage.Input{Tags: []robotstag.Rule{{Name: "noai", Source: robotstag.Meta}}}, "search=n robots, train-ai=n meta, tdm=n well-known, https://a.example/robots, https://a.example/file"},
		"another place of TDMRep": {usage.Input{Metas: []htmlmeta.Meta{{Name: "tdm-reservation", Content: "0"}}},
			"search=n robots, tdm=y meta, https://a.example/robots"},
		"links": {usage.Input{Links: []htmlmeta.Link{{Rel: "license", Type: "application/rsl+xml", Href: "https://a.example/file"},
			{Rel: "license", Type: "application/rsl+xml", Href: "https://a.example/page"}}},
			"search=n robots, tdm=n well-known, https://a.example/robots, https://a.example/file, https://a.example/page"},
	} {
		parsed := robotstxt.Parse([]byte(robots), 0)
		d := Decision{Allow: true, Reason: NoMatch, Robots: &snapshot.Resolution{File: parsed}, TDMRep: &snapshot.Resolution{TDMRep: file}, Group: parsed.Decide("/", "ExampleBot").Group}
		in := d.UsageInput("/")
		d.Stated = usage.Read(&in)
		var got []string
		s := d.UsageOf("/", c.response)
		for _, p := range s.Preferences {
			got = append(got, p.Category+"="+p.Value()+" "+string(p.In))
		}
		for _, l := range s.Licenses {
			got = append(got, l.URL)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
	d := Decision{Allow: true}
	in := usage.Input{Header: http.Header{"Link": {"</a.css>; rel=stylesheet"}}}
	if n := testing.AllocsPerRun(100, func() { d.UsageOf("/", in) }); n != 0 {
		t.Errorf("%v allocations for a response that states nothing", n)
	}
	if s := d.UsageOf("/", usage.Input{}); !reflect.DeepEqual(s, usage.Stated{}) {
		t.Errorf("got %+v", s)
	}
}
