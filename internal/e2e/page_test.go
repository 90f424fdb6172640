package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"robotsgate/internal/gatetest"
)

// startBrowser returns the context of a headless Chromium with further options.
func startBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	gatetest.Long(t)
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: Debian's package chromium has it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program))
	options = append(options, more...)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run its sandbox as root
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return ctx
}

// A tab is one of the browser. It records errors of its pages.
type tab struct {
	*testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // exceptions, console messages, dialogs
}

func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			b.faults = append(b.faults, "console: "+string(e.Type))
		case *log.EventEntryAdded:
			b.faults = append(b.faults, e.Entry.Text+" "+e.Entry.URL)
		case *page.EventJavascriptDialogOpening:
			b.faults = append(b.faults, "dialog: "+e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// open goes to a page and returns its status.
func (b *tab) open(url string) int64 {
	b.Helper()
	answer, err := chromedp.Run(b.ctx, chromedp.NavigateResponse(url))
	if err != nil {
		b.Fatalf("%s: %v", url, err)
	}
	return answer.Status
}

// text returns the visible text of the page.
func (b *tab) text() string {
	b.Helper()
	return eval[string](b, "document.body.innerText.replace(/\\s+/g, ' ')")
}

func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to become true.
func (b *tab) until(expression string) {
	b.Helper()
	script := fmt.Sprintf(`new Promise(done => {
		const look = () => { if (%s) { done(true); clearInterval(timer); } };
		const timer = setInterval(look, 50);
		look();
	})`, expression)
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise)); err != nil {
		b.Fatalf("%s does not become true: %v; the page shows\n%s", expression, err, b.text())
	}
}

// says checks that the page shows these words.
func (b *tab) says(words ...string) {
	b.Helper()
	got := b.text()
	for _, w := range words {
		if !strings.Contains(got, w) {
			b.Errorf("the page does not show %q:\n%s", w, got)
		}
	}
}

// quiet reports the errors of the tab's pages.
func (b *tab) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.Error(f)
	}
}

// fits checks that the page needs no horizontal scrolling at a width.
func (b *tab) fits(width int64) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, 800, chromedp.EmulateMobile))
	if got := eval[int64](b, "Math.max(document.documentElement.scrollWidth, innerWidth)"); got > width {
		wide := eval[string](b, fmt.Sprintf("[...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > %d).map(e => e.outerHTML.slice(0, 80)).join('\\n')", width))
		b.Errorf("in a window of width %d the page has width %d, because of\n%s", width, got, wide)
	}
}

// A pageGate is a gate with its status page and a client.
type pageGate struct {
	*gatetest.Site
	client *http.Client
	robots string // the file of the origin
}

func startForPage(t *testing.T) *pageGate {
	t.Helper()
	dir := t.TempDir()
	robots := filepath.Join(dir, "site/robots.txt")
	gatetest.Write(t, robots, "User-agent: *\nDisallow: /private/\n")
	gatetest.Write(t, filepath.Join(dir, "site/page.txt"), "public")
	g := &pageGate{robots: robots, Site: gatetest.ServeSite(t, filepath.Join(dir, "site"), dir, `admin: {listen: "127.0.0.1:0"}
crawlers:
- name: trial
  user_agents: ["*TrialBot*"]
  mode: report
- name: 'news "&<b>'
  product_tokens: [NewsBot]
`)}
	g.client = gatetest.Client(t, g.Proxy)
	return g
}

func (g *pageGate) get(t *testing.T, url string, status int) {
	t.Helper()
	gatetest.Request(t, g.client, http.MethodGet, url, status)
}

// TestStatusPage opens the status page in Chromium.
func TestStatusPage(t *testing.T) {
	browser := startBrowser(t, chromedp.Flag("no-proxy-server", true))
	for name, test := range map[string]func(*testing.T, context.Context, *pageGate){
		"updates itself":     pageUpdates,
		"without JavaScript": pageWithoutScript,
		"sizes and schemes":  pageFits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser, startForPage(t))
		})
	}
}

// pageUpdates reads the page from the gate's first request until the gate has ended.
func pageUpdates(t *testing.T, browser context.Context, g *pageGate) {
	b := newTab(t, browser)
	until := func(expression string) { // after the next update, which is now
		t.Helper()
		eval[bool](b, "document.dispatchEvent(new Event('visibilitychange'))")
		b.until(expression)
	}
	b.open(g.Admin + "/")
	b.says("Ready", "Enforcing", "trial (report mode)", "No requests yet.", "robotsgate env", g.Proxy, "Every requested robots.txt could be fetched.")
	eval[bool](b, "window.kept = true")
	g.get(t, "http://shop.invalid/page.txt", http.StatusOK)
	g.get(t, "http://shop.invalid/private/x", http.StatusForbidden)
	until("parseInt(document.querySelector('.tiles .denied dd').innerText) == 1")
	b.says("Allowed 1 Denied 1", "shop.invalid 1", "Disallow: /private/ http://shop.invalid, line 2 1")
	if n := eval[int](b, "document.querySelectorAll('svg rect.denied').length"); n != 1 {
		t.Errorf("the chart has %d bars of denials", n)
	}

	// An update keeps what the reader has opened, selected and typed.
	eval[bool](b, "document.getElementById('table').open = true")
	eval[bool](b, "(document.getElementById('table-scroll').focus(), true)")
	eval[bool](b, "(document.getElementById('url').value = 'http://half.typed', true)")
	g.get(t, "http://shop.invalid/private/y", http.StatusForbidden)
	until("parseInt(document.querySelector('.tiles .denied dd').innerText) == 2")
	if got := eval[string](b, "[window.kept, document.getElementById('table').open, document.activeElement.id, "+
		"document.getElementById('url').value].join()"); got != "true,true,table-scroll,http://half.typed" {
		t.Errorf("after an update: got %s", got)
	}

	// A link that has the focus stays.
	eval[bool](b, "(document.querySelector('#denials a').focus(), true)")
	g.get(t, "http://other.invalid/private/y", http.StatusForbidden)
	until("parseInt(document.querySelector('.tiles .denied dd').innerText) == 3")
	if got := eval[string](b, "document.activeElement.getAttribute('href')"); got != "/origin?origin=http%3a%2f%2fshop.invalid#l2" {
		t.Errorf("after an update the focus is at the link %q", got)
	}
	eval[bool](b, "(document.activeElement.blur(), true)")
	until("document.getElementById('denials').innerText.includes('other.invalid')")

	// New alerts are shown, and their number is spoken.
	gatetest.Write(t, g.robots+".headers", "Status: 503\n")
	g.get(t, "http://down.invalid/", http.StatusForbidden)
	until("document.getElementById('news').textContent == 'Needs attention: 1'")
	b.quiet()

	if err := g.Terminate(); err != nil {
		t.Errorf("the gate ends with %v", err)
	}
	until("!document.getElementById('stale').hidden")
	b.says("The gate does not answer. This page is from")
	b.says("Denied 4")
}

// pageWithoutScript reads the page and submits its form without JavaScript.
func pageWithoutScript(t *testing.T, browser context.Context, g *pageGate) {
	g.get(t, "http://shop.invalid/private/x", http.StatusForbidden)
	b := withoutScript(t, browser)
	b.open(g.Admin + "/")
	b.says("Denied 1", "shop.invalid 1", "Without JavaScript this page does not update itself.", "Rules in memory", "Snapshots on disk")
	b.do(
		chromedp.SetValue(chromedp.ID("url"), "http://shop.invalid/private/x"),
		chromedp.SetValue(chromedp.ID("crawler"), `news "&<b>`),
	)
	b.follow("button[type=submit]")
	b.says("Denied The longest matching rule decides", "line 2: Disallow: /private/", "Product token NewsBot", "Group *", "fresh, status 200")
	if chosen := eval[string](b, "document.getElementById('crawler').value + ' ' + document.getElementById('url').value"); chosen != `news "&<b> http://shop.invalid/private/x` {
		t.Errorf("the form does not show the submitted values: %s", chosen)
	}
	b.quiet()
}

// withoutScript opens a tab in which JavaScript is off.
func withoutScript(t *testing.T, browser context.Context) *tab {
	t.Helper()
	b := newTab(t, browser)
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	return b
}

// follow clicks what leads to another page.
func (b *tab) follow(selector string) {
	b.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.Fatalf("%s: %v; the page shows\n%s", selector, err, b.text())
	}
}

// pageFits checks the page empty and full, in several widths, light and dark.
func pageFits(t *testing.T, browser context.Context, g *pageGate) {
	b := newTab(t, browser)
	look := func(b *tab) {
		for scheme, back := range map[string]string{"light": "rgb(244, 245, 247)", "dark": "rgb(17, 21, 27)"} {
			b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
				_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				return err
			}))
			if got := eval[string](b, "getComputedStyle(document.body).backgroundColor"); got != back {
				t.Errorf("%s: the background is %s, want %s", scheme, got, back)
			}
		}
		for _, width := range []int64{320, 1280} {
			b.fits(width)
		}
	}
	b.open(g.Admin + "/")
	look(b)
	long := strings.Repeat("long-", 11) + "host." + strings.Repeat("wwwwww", 9) + ".invalid"
	g.get(t, "http://"+long+"/private/"+strings.Repeat("x", 300), http.StatusForbidden)
	b.open(g.Admin + "/?url=http://" + long + "/private/" + strings.Repeat("y", 1000) + "&crawler=trial")
	b.says(long, "report mode lets the request through")
	look(b)
	b.open(g.Admin + "/origin?origin=http://" + long)
	b.says("Disallow: /private/", "Refresh")
	b.fits(320)

	// The page that a refused browser gets.
	refused := newTab(t, startBrowser(t, chromedp.ProxyServer(g.Proxy)))
	refused.open("http://" + long + "/private/" + strings.Repeat("z", 300))
	refused.says("403 Refused by robots rules", "line 2: Disallow: /private/")
	look(refused)
	b.quiet()
}
