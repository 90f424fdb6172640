package questions

import (
	"net/http"
	"slices"
	"testing"

	"robotsgate/htmlmeta"
)

// TestUsageUnread: a statement of a response that cannot be read is told, and no other.
func TestUsageUnread(t *testing.T) {
	metas := func(content string) []htmlmeta.Meta {
		return []htmlmeta.Meta{{Name: "TDM-Reservation", Content: content}}
	}
	for _, c := range []struct {
		header http.Header
		metas  []htmlmeta.Meta
		want   []string
	}{
		{},
		{header: http.Header{"Content-Usage": {"train-ai=n, bots=x", "search=y"}, "Content-Signal": {"ai-train=no, use=reference", "/p x, search=YES"}, "Tdm-Reservation": {" 1 "}}, metas: metas(" 0")},
		{header: http.Header{"Content-Usage": {"train-ai=n,"}}, want: []string{`the response's Content-Usage: "train-ai=n," is no Dictionary of RFC 9651, so all of it states nothing`}},
		{header: http.Header{"Content-Usage": {"search=y", "Train-AI=n"}}, want: []string{`the response's Content-Usage: "search=y, Train-AI=n" is no Dictionary of RFC 9651, so all of it states nothing`}},
		{header: http.Header{"Content-Usage": {"/p train-ai=n"}}, want: []string{`the response's Content-Usage: "/p train-ai=n" is no Dictionary of RFC 9651, so all of it states nothing`}},
		{header: http.Header{"Content-Usage": {"train-ai=no, search=x, search=n, tdm=n, tdm"}}, want: []string{
			"the response's Content-Usage has neither y nor n for train-ai, so it says nothing about that",
			"the response's Content-Usage has neither y nor n for tdm, so it says nothing about that",
		}},
		{header: http.Header{"Content-Signal": {"/p ai-train=no", "ai-train=n, search=no"}}, want: []string{
			`the response's Content-Signal: "/p ai-train=no" has no member of the form label=value, so it states nothing`,
			"the response's Content-Signal has neither yes nor no for ai-train, so it says nothing about that",
		}},
		{header: http.Header{"Tdm-Reservation": {"true"}}, metas: metas("yes"), want: []string{
			`the response's tdm-reservation: "true" is neither 0 nor 1, so it states nothing`,
			`the page's tdm-reservation: "yes" is neither 0 nor 1, so it states nothing`,
		}},
	} {
		r := Reading{Header: c.header, Head: htmlmeta.Result{Metas: c.metas}}
		if got := r.Unread(); !slices.Equal(got, c.want) {
			t.Errorf("%v, %v: got %q, want %q", c.header, c.metas, got, c.want)
		}
	}
}
