package e2e

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"robotsgate/internal/gatetest"
)

// TestDemo runs the examples that robotsgate demo prints, and reads its status page.
func TestDemo(t *testing.T) {
	gatetest.Needs(t, "curl")
	demo := gatetest.ServeDemo(t)
	shell := func(command string) string {
		got, err := demo.Shell(command, t.TempDir()).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return string(got)
	}
	for url, want := range map[string]string{
		"http://shop.example/robots.txt":          `^User-agent: \*\nDisallow: /private/\n`,
		"http://shop.example/offers.html":         `^HTTP/1.1 200 OK\r\n(?s).*\nRobots-Gate-Decision: allow;reason=no-match`,
		"http://shop.example/private/plans.html":  `^HTTP/1.1 403 Forbidden\r\n(?s).*\nRobots-Gate-Decision: deny;reason=rule`,
		"https://shop.example/private/plans.html": `\nHTTP/2 403 ?\r\n(?s).*\nrobots-gate-decision: deny;reason=rule`,
		"http://shop.example/":                    `<title>Sample site of robotsgate demo</title>`,
	} {
		example := regexp.MustCompile(`(?m)^  (curl \S+ ` + regexp.QuoteMeta(url) + `) +# `).FindStringSubmatch(demo.String())
		if example == nil {
			t.Errorf("no example requests %s:\n%s", url, demo)
			continue
		}
		if got := shell(example[1]); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s printed\n%s", example[1], got)
		}
	}
	if got := shell("curl -s " + demo.Admin); !strings.Contains(got, "Disallow: /private/") {
		t.Errorf("the status page does not show the rule that denied:\n%s", got)
	}
}

// TestDemoChromium starts Chromium with the options that robotsgate demo prints, and follows every
// link of the sample site's first page, over https.
func TestDemoChromium(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	demo := gatetest.ServeDemo(t)
	line := regexp.MustCompile(`(?m)^  chromium (--.*) (https://\S+)$`).FindStringSubmatch(demo.String())
	if line == nil {
		t.Fatalf("there is no line for Chromium:\n%s", demo)
	}
	var options []chromedp.ExecAllocatorOption
	for flag := range strings.FieldsSeq(line[1]) {
		name, value, ok := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		switch {
		case !ok:
			options = append(options, chromedp.Flag(name, true))
		case name != "user-data-dir": // chromedp has its own, which may outlive the demonstration
			options = append(options, chromedp.Flag(name, value))
		}
	}
	b := newTab(t, startBrowser(t, options...))
	status := b.open(line[2])
	b.says("Sample site of robotsgate demo")
	links := eval[map[string]string](b, "Object.fromEntries([...document.querySelectorAll('dt a')].map(a => [a.innerText, a.href]))")
	for text, link := range links {
		want := int64(http.StatusOK)
		switch {
		case strings.HasPrefix(text, "Denied"):
			want = http.StatusForbidden
		case text == "No such host":
			want = http.StatusBadGateway
		}
		if got := b.open(link); got != want {
			t.Errorf("%s: %s: status %d, want %d", text, link, got, want)
		}
	}
	if status != http.StatusOK || len(links) < 10 {
		t.Errorf("the first page has status %d and the links %q", status, links)
	}
}

// TestDemoHeadless runs docs/clients.md's line for a page in Chromium, which ignores the proxy variables on a
// desktop with settings of its own.
func TestDemoHeadless(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "chromium")
	line := regexp.MustCompile(`(?m)^(robotsgate demo -- sh -c 'chromium) (.*?) +# root needs (--no-sandbox)$`).FindStringSubmatch(gatetest.Read(t, "../../docs/clients.md"))
	if line == nil {
		t.Fatal("docs/clients.md has no line for Chromium")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line[1]+" "+line[3]+" "+line[2])
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CURRENT_DESKTOP=GNOME"), &errs
	if page, err := cmd.Output(); err != nil || !strings.Contains(string(page), "Disallow: /private/") {
		t.Errorf("%v: Chromium does not show the rule, but\n%s\n%s", err, page, &errs)
	}
}

// TestDemoScrapy crawls the catalogue over https with docs/clients.md's spider and command.
func TestDemoScrapy(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "scrapy")
	page, dir := gatetest.Read(t, "../../docs/clients.md"), t.TempDir()
	spider := regexp.MustCompile("(?ms)Save this as\\s`(\\w+\\.py)`\\sto\\scrawl the catalogue with Scrapy:\n\n```python\n(.*?)^```").FindStringSubmatch(page)
	command := regexp.MustCompile(`(?m)^(robotsgate demo -- scrapy .*?) +# (.*)$`).FindStringSubmatch(page)
	if spider == nil || command == nil {
		t.Fatal("docs/clients.md does not show a spider and its command")
	}
	gatetest.Write(t, filepath.Join(dir, spider[1]), spider[2])
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command[1])
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if want := "robotsgate: " + command[2] + "\n"; !strings.HasPrefix(errs.String(), want+"robotsgate: denied: GET https://shop.example/catalogue/") {
		t.Errorf("it printed\n%s\ndocs/clients.md says\n%s", &errs, want)
	}
	titles := strings.Split(gatetest.Read(t, filepath.Join(dir, "titles.csv")), "\r\n")
	if len(titles) != 1+1+180+1 || titles[0] != "title" || titles[1] != "Catalogue" || titles[len(titles)-1] != "" {
		t.Errorf("the crawl has not found 180 pages, but these titles: %q", titles)
	}
}
