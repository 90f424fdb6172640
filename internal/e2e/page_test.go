package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
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

const hostileRule = `/hostile*</script><img src=x onerror="document.title='owned';alert(1)">` + `wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww`

// startForPage starts a gate, with more lines of its configuration. The file fleet.key in its folder is a key.
func startForPage(t *testing.T, more ...string) *pageGate {
	t.Helper()
	dir := t.TempDir()
	robots := filepath.Join(dir, "site/robots.txt")
	gatetest.Write(t, robots, "User-agent: *\nDisallow: /private/\nDisallow: "+hostileRule+"\nDisallow: /hostile\n")
	gatetest.Write(t, filepath.Join(dir, "site/page.txt"), "public")
	key := filepath.Join(dir, "fleet.key")
	gatetest.Write(t, key, strings.Repeat("key ", 8))
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &pageGate{robots: robots, Site: gatetest.ServeSite(t, filepath.Join(dir, "site"), dir, `admin: {listen: "127.0.0.1:0"}
crawlers:
- name: trial
  user_agents: ["*TrialBot*"]
  mode: report
- name: 'news "&<b>'
  product_tokens: [NewsBot]
`+strings.Join(more, ""))}
	g.client = gatetest.Client(t, g.Proxy)
	return g
}

func (g *pageGate) get(t *testing.T, url string, status int) {
	t.Helper()
	gatetest.Request(t, g.client, http.MethodGet, url, status)
}

// as sends a request with a User-Agent and returns the header of the response.
func (g *pageGate) as(t *testing.T, agent, url string) http.Header {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	answer, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.Header
}

// TestStatusPage opens the status page in Chromium.
func TestStatusPage(t *testing.T) {
	browser := startBrowser(t, chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP *.rebound.example 127.0.0.1")) // for pageOtherSites
	for name, test := range map[string]func(*testing.T, context.Context, *pageGate){
		"updates itself":     pageUpdates,
		"without JavaScript": pageWithoutScript,
		"origin":             pageOrigin,
		"by keyboard":        pageByKeyboard,
		"hostile texts":      pageHostile,
		"sizes and schemes":  pageFits,
		"other sites":        pageOtherSites,
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
	b.says("Ready", "Enforcing", "trial: report mode", "No requests yet.", "robotsgate env", g.Proxy, "Every requested robots.txt could be fetched.")
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
	if got := eval[string](b, "document.activeElement.getAttribute('href')"); got != "/origins?search=shop.invalid" {
		t.Errorf("after an update the focus is at the link %q", got)
	}
	eval[bool](b, "(document.activeElement.blur(), true)")
	until("document.getElementById('denials').innerText.includes('other.invalid')")

	// New alerts are shown, and their number is spoken.
	gatetest.Write(t, g.robots+".headers", "Status: 503\n")
	g.get(t, "http://down.invalid/", http.StatusForbidden)
	until("document.getElementById('news').textContent == 'Needs attention: 1'")
	without := gatetest.Client(t, g.Proxy) // the CA
	if answer, err := without.Get("https://shop.invalid/page.txt"); err == nil {
		answer.Body.Close()
		t.Error("a client trusts the gate without its CA")
	}
	until("document.getElementById('news').textContent == 'Needs attention: 2'")
	b.says("These clients have rejected the gate's certificates in the last hour: 127.0.0.1, ")
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

// pageOrigin goes from a denied host to its robots.txt, and fetches it again.
func pageOrigin(t *testing.T, browser context.Context, g *pageGate) {
	g.get(t, "http://shop.invalid/private/x", http.StatusForbidden)
	b := withoutScript(t, browser)
	for b.open(g.Admin + "/origins"); !strings.Contains(b.text(), "shop.invalid") && t.Context().Err() == nil; { // until it is saved
		b.open(g.Admin + "/origins")
	}
	b.open(g.Admin + "/")
	b.follow("#denials a[href^='/origins']")
	b.follow(".origins a")
	b.says("http://shop.invalid", "status 200", "Disallow: /private/")
	gatetest.Write(t, g.robots, "User-agent: *\nDisallow: /new/\n")
	b.follow("button")
	b.says("fresh, status 200, fetched", "Disallow: /new/")
	for !strings.Contains(b.text(), "Changed lines") && t.Context().Err() == nil { // until it is saved
		b.open(g.Admin + "/origin?origin=http://shop.invalid")
	}
	b.do(chromedp.Click(chromedp.CSS("summary")))
	b.says("-Disallow: /private/", "+Disallow: /new/")
	b.open(g.Admin + "/")
	b.follow("#crawlers a")
	b.says("The latest refusals of news", "GET http://shop.invalid/private/x")
	b.quiet()
}

// pageByKeyboard goes through the page with the Tab key: it reaches all that can be used, in order,
// and shows where it is.
func pageByKeyboard(t *testing.T, browser context.Context, g *pageGate) {
	g.get(t, "http://shop.invalid/private/x", http.StatusForbidden)
	b := newTab(t, browser)
	b.open(g.Admin + "/")
	const all = "[...document.querySelectorAll('a, button, input, select, summary, [tabindex]')].filter(e => e.checkVisibility())"
	n := eval[int](b, all+".length")
	for i := range n {
		b.do(chromedp.KeyEvent("\t"))
		if got := eval[int](b, all+".indexOf(document.activeElement)"); got != i {
			t.Fatalf("the Tab key reaches element %d in place of %d: %s", got, i, eval[string](b, "document.activeElement.outerHTML.slice(0, 200)"))
		}
		if got := eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"); got != "solid" {
			t.Errorf("element %d has the outline %s: %s", i, got, eval[string](b, "document.activeElement.outerHTML.slice(0, 200)"))
		}
	}
	if n < 10 {
		t.Errorf("the page has %d elements to use", n)
	}
}

// pageHostile shows texts that would be scripts if they were not escaped.
func pageHostile(t *testing.T, browser context.Context, g *pageGate) {
	attack := "http://shop.invalid" + strings.NewReplacer("*", "", `"`, "%22", " ", "%20", "<", "%3C", ">", "%3E").Replace(hostileRule)
	g.get(t, attack, http.StatusForbidden)
	b := newTab(t, browser)
	for _, path := range []string{"/", "/live", "/?url=" + url.QueryEscape(attack) + "&agent=" + url.QueryEscape(`"><script>alert(1)</script>`) + "&token=" + url.QueryEscape(`"><svg onload=alert(1)>`)} {
		b.open(g.Admin + path)
		b.says(`<img src=x onerror="document.title='owned';alert(1)">`)
		if got := eval[string](b, "document.title + document.querySelectorAll('main img, main script').length"); got != "robotsgate0" && got != "live0" {
			t.Errorf("%s: got %s", path, got)
		}
		if path != "/live" { // a part of the page, without style
			b.fits(360)
		}
	}
	b.quiet()

	// The content security policy blocks scripts even if a text were not escaped.
	c := newTab(t, browser)
	c.open(g.Admin + "/")
	eval[bool](c, `(document.body.append(Object.assign(document.createElement("script"), {textContent: "document.title = 'owned'"})), true)`)
	eval[bool](c, `(document.body.insertAdjacentHTML("beforeend", "<img src='/nothing' onerror='document.title = 1'>"), true)`)
	c.until("document.images[document.images.length - 1].complete")
	if title := eval[string](c, "document.title"); title != "robotsgate" {
		t.Errorf("an injected script has run: the title is %s", title)
	}
}

// contrast lists texts with too little contrast to their background (WCAG 2.2, 1.4.3: 4.5 to 1)
// and parts of the chart with too little contrast (1.4.11: 3 to 1).
const contrast = `(() => {
	const rgb = color => color.match(/[\d.]+/g).map(Number);
	const light = color => {
		const [r, g, b] = rgb(color).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = e => { const c = getComputedStyle(e).backgroundColor; return rgb(c)[3] === 0 ? behind(e.parentElement) : c; };
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
	const faint = [];
	for (const e of document.querySelectorAll("body *")) {
		const style = getComputedStyle(e);
		if (e.matches("rect.allowed, rect.denied, rect.reported") && ratio(style.fill, behind(e.closest("section"))) < 3) faint.push(e.className.baseVal);
		if (e.closest("svg, script, noscript") || !e.checkVisibility()) continue;
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && !e.matches("input")) continue;
		if (ratio(style.color, behind(e)) < 4.5) faint.push(e.outerHTML.slice(0, 100));
		if (e.placeholder && ratio(getComputedStyle(e, "::placeholder").color, behind(e)) < 4.5) faint.push(e.placeholder);
	}
	return faint.join("\n");
})()`

// pageFits checks the page empty and full, in several widths, light and dark.
func pageFits(t *testing.T, browser context.Context, g *pageGate) {
	b := newTab(t, browser)
	look := func() {
		for scheme, back := range map[string]string{"light": "rgb(244, 245, 247)", "dark": "rgb(17, 21, 27)"} {
			b.scheme(scheme)
			if got := eval[string](b, "getComputedStyle(document.body).backgroundColor"); got != back {
				t.Errorf("%s: the background is %s, want %s", scheme, got, back)
			}
			if faint := eval[string](b, contrast); faint != "" {
				t.Errorf("%s: too little contrast: %s", scheme, faint)
			}
		}
		for _, width := range []int64{320, 360, 768, 1280} {
			b.fits(width)
		}
		// Every field has a label, and the headings have the right levels.
		if bare := eval[string](b, "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).map(e => e.name).join()"); bare != "" {
			t.Errorf("fields without a label: %s", bare)
		}
		if got := eval[string](b, "document.documentElement.lang + ' ' + [...document.querySelectorAll('h1, h2, h3')].map(e => e.tagName).join('')"); got != "en H1H2H2H2H2H2H2H2H2H2H2" {
			t.Errorf("the language and the headings are %s", got)
		}
	}
	b.open(g.Admin + "/")
	look()
	long := strings.Repeat("long-", 11) + "host." + strings.Repeat("wwwwww", 9) + ".invalid"
	g.get(t, "http://"+long+"/private/"+strings.Repeat("x", 300), http.StatusForbidden)
	g.as(t, "TrialBot/1.0", "http://"+long+"/private/x")
	b.open(g.Admin + "/?url=http://" + long + "/private/" + strings.Repeat("y", 1000) + "&crawler=trial")
	b.says(long, "report mode lets the request through")
	look()
	b.open(g.Admin + "/origin?origin=http://" + long)
	b.says("Disallow: /private/", "Refresh")
	for _, width := range []int64{320, 1280} {
		b.fits(width)
	}
	b.quiet()
}

// pageOtherSites opens hostile sites: one whose name resolves to the gate's address, and one
// with links, frames and requests to the gate.
func pageOtherSites(t *testing.T, browser context.Context, g *pageGate) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(g.Admin, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, browser)
	for _, path := range []string{"/", "/api/overview", "/api/decision?url=http://target.invalid/"} {
		if status := b.open("http://gate.rebound.example:" + port + path); status != http.StatusForbidden {
			t.Errorf("%s under another name: got %d", path, status)
		}
	}

	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>evil</title><a id="page" href="%[1]s/">.</a><a id="ask" href="%[1]s/?url=http://target.invalid/">.</a>
			<iframe src="%[1]s/"></iframe><img src="%[1]s/api/decision?url=http://target.invalid/">`, g.Admin)
	}))
	defer evil.Close()
	site := strings.Replace(evil.URL, "127.0.0.1", "evil.rebound.example", 1)
	b.open(site)
	b.until("document.readyState == 'complete'")
	for _, path := range []string{"/api/overview", "/live", "/api/decision?url=http://target.invalid/"} {
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf("fetch(%q).then(a => a.text(), () => 'refused')", g.Admin+path), chromedp.EvalAwaitPromise))
		if err != nil || got != "refused" {
			t.Errorf("another site can read %s: %v %s", path, err, got)
		}
	}
	for id, want := range map[string]int64{"page": http.StatusOK, "ask": http.StatusForbidden} {
		b.open(site)
		answer, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.ID(id)))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status != want {
			t.Errorf("the link %s: got %d, want %d", id, answer.Status, want)
		}
	}
	if log := gatetest.Read(t, g.Site.Log); strings.Contains(log, "target.invalid") {
		t.Errorf("another site has caused a request to an origin:\n%s", log)
	}
}
