package policy

import "robotsgate/policy/usage"

// UsageInput returns what is known of the use of a URL before the request for it is sent: what robots.txt
// and tdmrep.json say. The caller adds the response. Path is that of the request's [Target].
func (d *Decision) UsageInput(path string) usage.Input {
	in := usage.Input{Group: d.Group, Path: path, Denied: !d.Allow && d.Reason != ByUsage}
	if d.Robots != nil {
		in.Robots = d.Robots.File
	}
	if d.TDMRep != nil {
		in.TDMRep = d.TDMRep.TDMRep
	}
	return in
}
