package proxy

import (
	"net/http"
	"slices"
	"strings"

	"robotsgate/htmlmeta"
	"robotsgate/policy"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/response"
)

// stated returns what is in force for a response: the statements known before the request, and
// those of the response's header and the page's head.
func stated(d *policy.Decision, path string, s *response.Inspection) usage.Stated {
	if s.Received == nil && len(s.Tags)+len(s.Remembered)+len(s.Metas)+len(s.Links)+len(s.Seen.Metas)+len(s.Seen.Links) == 0 {
		return d.Stated // the response states nothing
	}
	in := usage.Input{Header: s.Received, Metas: s.Metas, Links: s.Links, Tags: s.Tags}
	if len(s.Seen.Metas)+len(s.Seen.Links) > 0 { // remembered, since the response has no page
		in.Metas, in.Links = s.Seen.Metas, s.Seen.Links
	}
	if len(s.Remembered) > 0 {
		in.Tags = slices.Concat(s.Tags, s.Remembered)
	}
	return d.UsageOf(path, in)
}

// withReserved returns the decision after a response has been read. It is a denial, by policy.ByUsage, if the response
// reserves a purpose of the crawler, or if the policy refuses unread pages and the page's head was not read whole;
// otherwise it is the one before.
func withReserved(in *inbound, s *response.Signals, resp *http.Response) *policy.Decision {
	d, settings := s.Decision, in.settings.Engine.Usage()
	if !settings.Refuses() || !d.Crawler.Declares() || !d.Allow || d.Reason == policy.ByOverride {
		return d
	}
	by, _, reserved := s.Stated.Reserved(d.Crawler.Purposes, d.Crawler.ContentUse)
	if !reserved && !(settings.Unread == policy.RefuseUnread && len(d.Crawler.Purposes) > 0 && unread(in.method, resp, &s.Inspection)) {
		return d
	}
	denied := *d
	denied.Allow, denied.Reason, denied.Reserved = false, policy.ByUsage, by
	return &denied
}

// unread reports whether a response has, or may have, a page or parts of a page with a head that the gate has not read
// whole.
func unread(method string, resp *http.Response, s *response.Inspection) bool {
	if s.Head.State == "partial" || s.Unknown {
		return true
	}
	// The parts may be the whole page.
	return method != http.MethodHead && isPart(resp) && s.Head.State == "skipped" &&
		(htmlmeta.MayBePage(s.ContentType) || strings.HasPrefix(strings.ToLower(s.ContentType), "multipart/byteranges"))
}

// isPart reports whether a response has only a part of a page: a range, or the differences to an earlier one, which the
// client asks for with A-IM (RFC 3229, 10.4.1).
func isPart(resp *http.Response) bool {
	return resp.StatusCode == http.StatusPartialContent || resp.StatusCode == http.StatusIMUsed
}
