package policy

import "robotsgate/policy/usage"

// UsageOf returns what is in force for a response to the request, whose target has this path. Of the
// input only what concerns the response is read: its header, tags, metas and links.
func (d *Decision) UsageOf(path string, response usage.Input) usage.Stated {
	in := usage.Input{Header: response.Header, Tags: response.Tags, Metas: response.Metas, Links: response.Links}
	if !in.MayState() {
		return d.Stated // the response states nothing
	}
	in = d.UsageInput(path)
	in.Header, in.Tags, in.Metas, in.Links = response.Header, response.Tags, response.Metas, response.Links
	return usage.Read(&in)
}
