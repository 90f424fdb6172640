package usage_test

import (
	"net/http"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// nothingStated returns what is known of an ordinary page, for which nothing is stated.
func nothingStated() *usage.Input {
	f := robotstxt.Parse([]byte("User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n\nUser-agent: GPTBot\nContent-Usage: train-ai=n\nDisallow: /\n\n"+
		"Sitemap: https://site.test/sitemap.xml\nSitemap: https://site.test/news.xml\n"), 0)
	return &usage.Input{
		Robots: f, Group: f.Group("ExampleBot"), Path: "/page?x=1",
		Header: http.Header{
			"Content-Type": {"text/html; charset=utf-8"}, "Content-Length": {"1234"}, "Date": {"Mon, 02 Nov 2026 10:00:00 GMT"},
			"Server": {"nginx"}, "Cache-Control": {"max-age=60"}, "Etag": {`"x"`}, "Vary": {"Accept-Encoding"},
			"Link": {"</style.css>; rel=preload; as=style, <https://site.test/feed+xml>; rel=alternate"},
		},
		Tags:  []robotstag.Rule{{Name: "noarchive", Source: robotstag.Meta, Scope: "*"}},
		Metas: []htmlmeta.Meta{{Name: "viewport", Content: "width=device-width"}, {Name: "description", Content: "A page."}, {Name: "robots", Content: "noarchive"}},
	}
}

func TestReadNothing(t *testing.T) {
	in := nothingStated()
	if got := usage.Read(in); got.Preferences != nil || got.Licenses != nil {
		t.Errorf("got %v", got)
	}
}

func BenchmarkRead(b *testing.B) {
	stated := row{URL: "https://site.test/blog/1", ProductToken: "ExampleBot",
		Robots:  new("User-agent: *\nContent-Usage: train-ai=n, search=y\nContent-Usage: /blog/ train-ai=y\nContent-Signal: search=yes, ai-train=no\nDisallow: /x\n"),
		Headers: [][2]string{{"Content-Usage", "train-ai=n"}, {"TDM-Reservation", "1"}}}
	ordinary := robotstxt.Parse([]byte("User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nSitemap: https://site.test/sitemap.xml\n"), 0)
	for _, bb := range []struct {
		name string
		in   *usage.Input
	}{
		{"Nothing", nothingStated()},
		{"BeforeRequest", &usage.Input{Robots: ordinary, Group: ordinary.Group("ExampleBot"), Path: "/page"}},
		{"Stated", stated.input(b)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				usage.Read(bb.in)
			}
		})
	}
}
