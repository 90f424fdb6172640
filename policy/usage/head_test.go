package usage

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
)

func TestHeadOf(t *testing.T) {
	rsl := htmlmeta.Link{Rel: "license", Type: "application/rsl+xml", Href: "https://a.example/l"}
	var many []htmlmeta.Meta
	var links []htmlmeta.Link
	for i := range 100 {
		many = append(many, htmlmeta.Meta{Name: "tdm-policy", Content: fmt.Sprint("https://a.example/", i)})
		links = append(links, htmlmeta.Link{Rel: "license", Type: "application/rsl+xml", Href: fmt.Sprint("https://a.example/", i)})
	}
	late := append(many, htmlmeta.Meta{Name: "tdm-reservation", Content: "1"})
	for name, c := range map[string]struct {
		metas []htmlmeta.Meta
		links []htmlmeta.Link
		want  Head
	}{
		"nothing": {metas: []htmlmeta.Meta{{Name: "viewport", Content: "1"}, {Name: "robots", Content: "noai"}}, links: []htmlmeta.Link{{Rel: "stylesheet", Href: "/x"}, {Rel: "license", Href: "/cc"}}},
		"a reservation": {
			metas: []htmlmeta.Meta{{Name: "TDM-Reservation", Content: " 1\n"}, {Name: "tdm-reservation", Content: "1"}, {Name: "tdm-reservation", Content: "0"}, {Name: "tdm-reservation", Content: "2"}},
			want:  Head{Metas: []htmlmeta.Meta{{Name: "tdm-reservation", Content: "1"}, {Name: "tdm-reservation", Content: "0"}}},
		},
		"licences": {
			links: []htmlmeta.Link{rsl, rsl, {Rel: "Alternate LICENSE", Type: "Application/RSL+xml; x", Href: "https://a.example/2"},
				{Rel: "licensed", Type: rsl.Type, Href: "x"}, {Rel: "license", Type: rsl.Type, Href: strings.Repeat("x", 2049)}},
			want: Head{Links: []htmlmeta.Link{rsl, {Rel: "license", Type: rsl.Type, Href: "https://a.example/2"}}},
		},
		"too many":                     {metas: many, links: links, want: Head{Metas: many[:16], Links: links[:16]}},
		"a reservation after too many": {metas: late, want: Head{Metas: append(many[:16:16], late[100])}},
		"too long":                     {metas: []htmlmeta.Meta{{Name: "tdm-policy", Content: strings.Repeat("x", 2049)}}},
	} {
		got := HeadOf(c.metas, c.links)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if got.Cost() < 48*len(c.want.Metas)+64*len(c.want.Links) || got.Cost() > 80_000 {
			t.Errorf("%s: a cost of %d bytes", name, got.Cost())
		}
	}
	metas, none := []htmlmeta.Meta{{Name: "viewport", Content: "x"}, {Name: "robots", Content: "noindex"}}, []htmlmeta.Link{{Rel: "stylesheet"}}
	if n := testing.AllocsPerRun(100, func() { HeadOf(metas, none) }); n != 0 {
		t.Errorf("%v allocations for a page that states nothing", n)
	}
}

// TestHeadOfUnreadable checks that links and policies that cannot be read take no place.
func TestHeadOfUnreadable(t *testing.T) {
	metas := []htmlmeta.Meta{{Name: "tdm-reservation", Content: "1"}}
	var links []htmlmeta.Link
	for i := range 20 {
		path := fmt.Sprintf("/%d", i)
		metas = append(metas, htmlmeta.Meta{Name: "tdm-policy", Content: path})
		links = append(links, htmlmeta.Link{Rel: "license", Type: "application/rsl+xml", Href: path})
	}
	metas = append(metas, htmlmeta.Meta{Name: "tdm-policy", Content: "https://a.test/p"})
	links = append(links, htmlmeta.Link{Rel: "license", Type: "application/rsl+xml", Href: "https://a.test/l"})
	h := HeadOf(metas, links)
	if len(h.Metas) != 2 || h.Metas[1].Content != "https://a.test/p" || len(h.Links) != 1 || h.Links[0].Href != "https://a.test/l" {
		t.Errorf("got %+v", h)
	}
}
