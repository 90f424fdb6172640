package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestBrowsersAround checks what docs/browsers.md says of requests and packets that browsers send
// around the gate, and the options that prevent it.
func TestBrowsersAround(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	b := newBrowserSite(t, "")
	documented := func(pattern string) string {
		m := regexp.MustCompile("`(" + pattern + ")`").FindStringSubmatch(b.doc)
		if m == nil {
			t.Fatalf("docs/browsers.md does not have %s", pattern)
		}
		return m[1]
	}
	bypass := regexp.MustCompile(`"(.*)"`).FindStringSubmatch(documented(`bypass: ".*"`))[1]
	withoutUDP := documented(`--webrtc-ip-handling-policy=.*?`)
	address, port, _ := strings.Cut(strings.TrimPrefix(b.Proxy, "http://"), ":")
	for _, c := range []struct {
		name, library string
		options       map[string]any
		want          string
	}{
		{"playwright", "playwright-core", map[string]any{"executablePath": "/usr/bin/chromium",
			"proxy": map[string]string{"server": b.Proxy}}, "own machine: false, WebRTC: true"},
		{"playwright with options", "playwright-core", map[string]any{"executablePath": "/usr/bin/chromium",
			"proxy": map[string]string{"server": b.Proxy, "bypass": bypass}, "args": []string{withoutUDP}}, "own machine: true, WebRTC: false"},
		{"puppeteer with Firefox", "puppeteer-core", map[string]any{"browser": "firefox", "executablePath": "/usr/bin/firefox-esr",
			"extraPrefsFirefox": map[string]any{"network.proxy.type": 1, "network.proxy.http": address, "network.proxy.http_port": json.Number(port),
				documented(`media\..*?`): false}}, "own machine: true, WebRTC: false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gatetest.Needs(t, "chromium")
			gatetest.Needs(t, "firefox-esr")
			mustHaveModule(t, c.library)
			options, err := json.Marshal(c.options)
			if err != nil {
				t.Fatal(err)
			}
			gatetest.Write(t, b.dir+"/around.cjs", gatetest.Read(t, "testdata/clients/around.cjs")) // beside node_modules
			if got := b.run(t, abs(t, node()), "around.cjs", c.library, string(options), "http://shop.invalid/page.html"); got != c.want+"\n" {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
