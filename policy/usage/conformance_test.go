package usage_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gatetest"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// A row is one line of a conformance file: the form of "usage --batch" with the expected answer.
// Rows of other kinds in the same folder are skipped.
type row struct {
	URL          string      `json:"url"`
	ProductToken string      `json:"product_token"`
	Robots       *string     `json:"robots"`
	RobotsBase64 []byte      `json:"robots_b64"`
	Headers      [][2]string `json:"headers"`
	HTML         *string     `json:"html"`
	TDMRep       *string     `json:"tdmrep"`

	Want *struct {
		Usage    map[string]string `json:"usage"`
		Licenses []string          `json:"licenses"`
	} `json:"want"`
	WantDetail *[]usage.Detail `json:"want_detail"`
	Why        string          `json:"why"`
}

func compareDetails(a, b usage.Detail) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

// input returns what is known of the row's URL.
func (r row) input(t testing.TB) *usage.Input {
	in := &usage.Input{Path: canonical.PathOf(r.URL), Header: http.Header{}}
	if r.Robots != nil {
		r.RobotsBase64 = []byte(*r.Robots)
	}
	if r.RobotsBase64 != nil {
		in.Robots = robotstxt.Parse(r.RobotsBase64, 0)
		v := in.Robots.Decide(in.Path, r.ProductToken)
		in.Group, in.Denied = v.Group, !v.Allowed
	}
	for _, h := range r.Headers {
		in.Header.Add(h[0], h[1])
	}
	tags := []robotstag.Tags{robotstag.ParseHeader(in.Header["Robots-Tag"], in.Header["X-Robots-Tag"])}
	if r.HTML != nil {
		page, err := htmlmeta.Scan(strings.NewReader(*r.HTML), htmlmeta.Options{ContentType: "text/html; charset=utf-8"})
		if err != nil {
			t.Error(err)
		}
		in.Metas, in.Links = page.Metas, page.Links
		for _, m := range page.Metas {
			tags = append(tags, robotstag.ParseMeta(m.Name, m.Content))
		}
	}
	in.Tags = robotstag.Union(tags...).For(r.ProductToken)
	if r.TDMRep != nil {
		in.TDMRep, _ = usage.ParseTDMRep([]byte(*r.TDMRep))
	}
	return in
}

// check compares what is read with what the row wants.
func (r row) check(t *testing.T) {
	got := usage.Read(r.input(t))
	if !maps.Equal(got.Values(), r.Want.Usage) || !slices.Equal(got.URLs(), r.Want.Licenses) {
		t.Errorf("%s: got %v, licences %q; want %v, licences %q", r.Why, got.Values(), got.URLs(), r.Want.Usage, r.Want.Licenses)
	}
	if r.WantDetail == nil {
		return
	}
	want := slices.SortedFunc(slices.Values(*r.WantDetail), compareDetails)
	if got := slices.SortedFunc(slices.Values(got.Details()), compareDetails); !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", r.Why, got, want)
	}
}

// TestCases runs the cases of this repository.
func TestCases(t *testing.T) {
	if n := gatetest.Cases(t, "testdata", check); n < 50 {
		t.Errorf("%d cases, want 50 or more", n)
	}
}

func TestConformance(t *testing.T) { gatetest.Conformance(t, check) }

// check runs a line of this form.
func check(t *testing.T, where string, line []byte) bool {
	var r row
	if err := json.Unmarshal(line, &r); err != nil || r.Want == nil {
		return false
	}
	t.Run(where, r.check)
	return true
}
