package policy

import (
	"testing"

	"robotsgate/policy/usage"
)

// TestUsageInput checks that a decision says what is known of the use of its URL.
func TestUsageInput(t *testing.T) {
	const robots = "User-agent: *\nDisallow: /private/\n"
	settings := defaults()
	for _, c := range []struct {
		path   string
		status int
		change func(*Decision) // nil: none
		denied bool
		robots bool // there are rules
		tdmrep bool
	}{
		{path: "/page?q=1", status: 200, robots: true},
		{path: "/private/", status: 200, robots: true, denied: true},
		{path: "/page", status: 404},
		{path: "/page", status: 500, denied: true},
		{path: "/page", status: 200, robots: true, change: func(d *Decision) { d.Allow, d.Reason = false, ByUsage }},
		{path: "/page", status: 200, robots: true, tdmrep: true, change: func(d *Decision) { d.TDMRep = &Resolution{TDMRep: &usage.TDMFile{}} }},
		{path: "/page", status: 200, change: func(d *Decision) { *d = Decision{Allow: true, Reason: ByOverride} }},
	} {
		target, err := ParseURL("https://example.com" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		d := settings.Judge(c.status, []byte(robots), target, []string{"ExampleBot"})
		if c.change != nil {
			c.change(&d)
		}
		in := d.UsageInput(target.Path)
		if in.Path != c.path || in.Denied != c.denied || (in.Robots != nil) != c.robots || (in.TDMRep != nil) != c.tdmrep || in.Group != d.Group {
			t.Errorf("%s, %d %s: got %+v, want %+v", c.path, c.status, d.Reason, in, c)
		}
		if c.robots && !in.Group.OK() {
			t.Errorf("%s: got no group", c.path)
		}
	}
}
