// Package questions answers the questions of check, tags and usage --batch, each a line of JSON, and has what these
// commands read of a page and its header.
package questions

import "robotsgate/policy/robotstag"

// given returns the bytes of a member in base64, or else the text beside it: programs may write empty members.
func given(base64 []byte, text *string) []byte {
	if len(base64) == 0 && text != nil {
		return []byte(*text)
	}
	return base64
}

// withMetas adds the tags of the page's head.
func (r *Reading) withMetas(tags robotstag.Tags) robotstag.Tags {
	all := []robotstag.Tags{tags}
	for _, m := range r.Head.Metas {
		all = append(all, robotstag.ParseMeta(m.Name, m.Content))
	}
	return robotstag.Union(all...)
}
