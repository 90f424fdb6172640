package e2e

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"robotsgate/internal/gatetest"
)

// TestAccessible checks every page of the gate with axe-core: names, roles, labels, headings,
// landmarks, tables and contrast; light and dark, at the widths of a phone and of a desktop.
func TestAccessible(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	axe, err := os.ReadFile("testdata/clients/node_modules/axe-core/axe.min.js") // .ci/long installs it
	if err != nil {
		t.Skipf("%v: npm has it", err)
	}
	browser := startBrowser(t, chromedp.Flag("no-proxy-server", true))
	empty, g := startForPage(t), startForPage(t)
	alone := startForPage(t, "fleet: {address: \"redis://127.0.0.1:1\", key_file: fleet.key}\n")
	ofTwo, audited := inFleet(t), withAuditLog(t)
	id := g.fill(t)
	refusals := g.refusals()
	defer refusals.Close()
	for name, url := range map[string]string{
		"status, empty":      empty.Admin + "/",
		"status":             g.Admin + "/",
		"the store is away":  alone.Admin + "/",
		"in a fleet":         ofTwo.Admin + "/",
		"an audit log":       audited.Admin + "/",
		"explain":            g.Admin + "/?url=http://shop.invalid/private/x&agent=TrialBot",
		"explain, a mistake": g.Admin + "/?url=x",
		"refusal by its id":  g.Admin + "/?id=" + id,
		"refusals":           g.Admin + "/refusals",
		"refusals, none":     g.Admin + "/refusals?crawler=x",
		"origins":            g.Admin + "/origins",
		"origins, none":      g.Admin + "/origins?search=x&from=1-0",
		"origin":             g.Admin + "/origin?origin=http://shop.invalid",
		"origin, unknown":    g.Admin + "/origin?origin=http://unknown.invalid",
		"the proxy's own":    g.Proxy + "/",
		"a refusal":          refusals.URL + "/private/x",
	} {
		t.Run(name, func(t *testing.T) {
			b := newTab(t, browser)
			b.open(url)
			eval[bool](b, "(document.querySelectorAll('details').forEach(d => d.open = true), true)")
			eval[bool](b, string(axe)+"; true")
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				for _, width := range []int64{320, 1280} {
					b.fits(width)
					if found := b.promised(violations); found != "" {
						t.Errorf("%s, in a window of width %d:\n%s", scheme, width, found)
					}
				}
			}
		})
	}
}

// inFleet returns a gate that uses the store of a fleet.
func inFleet(t *testing.T) *pageGate {
	t.Helper()
	return startForPage(t, "fleet: {address: \""+gatetest.Redis(t).Address()+"\", key_file: fleet.key}\n")
}

// withAuditLog returns a gate with an audit log.
func withAuditLog(t *testing.T) *pageGate {
	t.Helper()
	g := startForPage(t, `log:
  audit: audit.jsonl
`)
	g.get(t, "http://shop.invalid/page.txt", http.StatusOK)
	return g
}

// violations runs axe-core and lists what it finds.
const violations = `axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + v.help + "\n  " + n.html.slice(0, 150) + "\n  " + n.any.map(c => c.message).join("; "))).join("\n"))`

// promised returns what an expression promises.
func (b *tab) promised(expression string) string {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// scheme makes the pages light or dark.
func (b *tab) scheme(name string) {
	b.Helper()
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}))
}

// fill sends requests so that the status page has something in every part, and returns the id of a
// refusal.
func (g *pageGate) fill(t *testing.T) (id string) {
	t.Helper()
	g.get(t, "http://shop.invalid/page.txt", http.StatusOK)
	g.get(t, "http://shop.invalid/private/x", http.StatusForbidden)
	g.get(t, "http://127.0.0.1:1/", http.StatusForbidden) // the egress guard
	header := g.as(t, "TrialBot/1.0", "http://shop.invalid/private/report")
	gatetest.Write(t, g.robots+".headers", "Status: 503\n")
	g.get(t, "http://"+strings.Repeat("down-", 10)+".invalid/", http.StatusForbidden)
	if err := os.Remove(g.robots + ".headers"); err != nil {
		t.Fatal(err)
	}
	gatetest.Write(t, g.robots, "User-agent: *\nDisallow: /private/\nDisallow: /"+strings.Repeat("new", 100)+"\n")
	for page := ""; !strings.Contains(page, "Changed lines") && t.Context().Err() == nil; { // until the file before is saved
		gatetest.Request(t, http.DefaultClient, http.MethodPost, g.Admin+"/api/refresh?origin=http://shop.invalid", http.StatusOK)
		page, _ = gatetest.Request(t, http.DefaultClient, http.MethodGet, g.Admin+"/origin?origin=http://shop.invalid", http.StatusOK)
	}
	return header.Get("Robots-Gate-Id")
}

// refusals is a server that answers a browser as the gate answers a crawler.
func (g *pageGate) refusals() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://shop.invalid"+r.URL.Path, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		asked.Header.Set("Accept", "text/html")
		answer, err := g.client.Do(asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
}
