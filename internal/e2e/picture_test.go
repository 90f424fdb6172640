package e2e

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"robotsgate/internal/gatetest"
)

// TestPicture takes the picture of the status page for README.md: light, 1280 pixels wide, with the data of the demo.
// With ROBOTSGATE_PICTURE=FILE it is written there.
func TestPicture(t *testing.T) {
	browser := startBrowser(t, chromedp.Flag("no-proxy-server", true))
	demo := gatetest.ServeDemo(t)
	proxy, err := url.Parse(demo.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	get := func(agent, target string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for n := range 120 {
		get("ExampleBot/1.0", fmt.Sprintf("http://shop.example/catalogue/%03d.html", n+1))
	}
	for _, path := range []string{"", "offers.html", "private/plans.html", "private/press.html", "moved.html", "report.html", "terms.html"} {
		for _, agent := range []string{"ExampleBot/1.0", "TrainBot/1.0", "ReportBot/1.0"} {
			get(agent, "http://shop.example/"+path)
		}
	}
	get("ExampleBot/1.0", "http://norobots.example/")

	b := newTab(t, browser)
	b.do(chromedp.EmulateViewport(1280, 1265))
	b.open(demo.Admin + "/?agent=ExampleBot/1.0&url=http://shop.example/private/plans.html")
	b.says("Denied", "shop.example", "Disallow: /private/")
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil || size.Width != 1280 || len(picture) >= 150_000 {
		t.Errorf("%v: %d pixels wide, %d bytes; want 1280 pixels and less than 150 KB", err, size.Width, len(picture))
	}
	if file := os.Getenv("ROBOTSGATE_PICTURE"); file != "" {
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
