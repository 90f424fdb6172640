package policy

import (
	"slices"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// UsageOf returns what is in force for a response to the request, whose target has this path. Of the
// input only what concerns the response is read: its header, tags, metas and links.
//
// It makes a quick effort. If that is not enough, it uses what d says of robots.txt and tdmrep.json: the
// decision has made a thorough effort for that, of which only a few are made at a time.
func (d *Decision) UsageOf(path string, response usage.Input) usage.Stated {
	in := usage.Input{Header: response.Header, Tags: response.Tags, Metas: response.Metas, Links: response.Links}
	if !in.MayState() {
		return d.Stated // the response states nothing
	}
	in = d.UsageInput(path)
	in.Header, in.Tags, in.Metas, in.Links = response.Header, response.Tags, response.Metas, response.Links
	in.Effort = new(robotstxt.Quick())
	if s := usage.Read(&in); !in.Effort.Exhausted() {
		return s
	}
	in.Robots, in.Group, in.TDMRep = nil, robotstxt.Group{}, nil
	return joined(d.Stated, usage.Read(&in))
}

// joined returns the statements of robots.txt and tdmrep.json in known together with those of a response. TDMRep
// counts in one place only: if the response has a reservation, that of tdmrep.json is left out.
func joined(known, response usage.Stated) usage.Stated {
	setsTDM := slices.ContainsFunc(response.Preferences, func(p usage.Preference) bool { return p.Source == usage.TDMRep })
	var s, last usage.Stated
	for _, p := range known.Preferences {
		if p.In == usage.InRobots {
			s.Preferences = append(s.Preferences, p)
		} else if !setsTDM {
			last.Preferences = append(last.Preferences, p)
		}
	}
	for _, l := range known.Licenses {
		if l.In == usage.InRobots {
			s.Licenses = append(s.Licenses, l)
		} else if !setsTDM {
			last.Licenses = append(last.Licenses, l)
		}
	}
	s.Preferences = slices.Concat(s.Preferences, response.Preferences, last.Preferences)
	s.Licenses = slices.Concat(s.Licenses, response.Licenses, last.Licenses)
	seen := map[string]bool{}
	s.Licenses = slices.DeleteFunc(s.Licenses, func(l usage.License) bool {
		again := seen[l.URL]
		seen[l.URL] = true
		return again
	})
	return s
}
