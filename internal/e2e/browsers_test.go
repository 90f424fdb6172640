package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// A browserSite is a gate with a folder in which the lines of docs/clients.md are run, and which
// is the home directory of the browsers.
type browserSite struct {
	*gatetest.Site
	dir   string
	doc   string              // docs/clients.md, for this gate and a page of its site
	lines map[string][]string // the lines on the gate's page, likewise
}

// newBrowserSite starts a gate with these crawlers.
func newBrowserSite(t *testing.T, crawlers string) *browserSite {
	t.Helper()
	b := &browserSite{
		Site: gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n"+crawlers), dir: t.TempDir(),
	}
	if err := os.Symlink(abs(t, "testdata/clients/node_modules"), filepath.Join(b.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	gatetest.Write(t, filepath.Join(b.dir, "ca.pem"), gatetest.Read(t, b.CA))
	replace := strings.NewReplacer(b.replacements()...).Replace
	page, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, b.Proxy+"/", http.StatusOK)
	b.doc, b.lines = replace(gatetest.Read(t, "../../docs/clients.md")), gatetest.PageLines(replace(page))
	return b
}

// replacements returns what is replaced in the documentation and on the gate's page: pairs of old
// and new texts.
func (b *browserSite) replacements() []string {
	sandbox := ""
	if os.Getuid() == 0 {
		sandbox = `args: ["--no-sandbox"], `
	}
	all := []string{
		"127.0.0.1:9309", strings.TrimPrefix(b.Proxy, "http://"), "https://example.com/", "https://shop.invalid/page.html",
		"USER", "news", "PASSWORD", "correct-horse",
		// The packages without a browser use Debian's.
		`require("playwright")`, `require("playwright-core")`,
		".launch({\n", ".launch({ " + sandbox + `executablePath: "/usr/bin/chromium",` + "\n",
	}
	if os.Getuid() != 0 {
		return all
	}
	// Chromium refuses to run its sandbox as root.
	return append(all, "chromium --headless", "chromium --headless --no-sandbox")
}

// block returns the block of a language, the one that contains a text.
func (b *browserSite) block(t *testing.T, language, has string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(b.doc, -1) {
		if strings.Contains(m[1], has) {
			return m[1]
		}
	}
	t.Fatalf("docs/clients.md has no block of %s with %s", language, has)
	return ""
}

// onPage checks that the lines for a client on the gate's page are in a block.
func (b *browserSite) onPage(t *testing.T, client, block string) {
	t.Helper()
	if len(b.lines[client]) == 0 {
		t.Errorf("the gate's page has no lines for %s", client)
	}
	for _, line := range b.lines[client] {
		if !strings.Contains(block, line+"\n") {
			t.Errorf("docs/clients.md does not have %q of the gate's page in\n%s", line, block)
		}
	}
}

// run runs a command in the folder and returns its standard output.
func (b *browserSite) run(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = b.dir, t.Output(), time.Second // a browser may outlive the command
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "GORACE=" + os.Getenv("GORACE"),
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + abs(t, "testdata/clients")}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s\n%v", strings.Join(command, " "), err)
	}
	return string(out)
}

// runs runs a command that must print the site's page.
func (b *browserSite) runs(t *testing.T, command ...string) {
	t.Helper()
	if got := b.run(t, command...); !strings.Contains(got, "What everybody may read") {
		t.Errorf("%s\nprinted\n%s", strings.Join(command, " "), got)
	}
}

// mustHaveModule ends a test if a package of npm is not installed.
func mustHaveModule(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat("testdata/clients/node_modules/" + name); err != nil {
		t.Skipf("%s is not installed: npm has it", name)
	}
}

// TestBrowsers runs the lines of docs/clients.md for Chromium and Playwright, behind a gate whose clients all need a
// login for Playwright, and none for Chromium, which cannot send one from a command line.
func TestBrowsers(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "certutil")
	gatetest.Needs(t, "chromium")
	t.Run("chromium", func(t *testing.T) {
		b := newBrowserSite(t, "")
		lines, _, _ := strings.Cut(b.block(t, "sh", "\nchromium "), "mkdir -p profile")
		b.onPage(t, "Chromium on Linux", lines)
		b.runs(t, "sh", "-ec", lines)
	})
	t.Run("playwright", func(t *testing.T) {
		mustHaveModule(t, "playwright-core")
		hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		b := newBrowserSite(t, fmt.Sprintf("unknown_clients: refuse\ncrawlers: [{name: news, login: {user: news, password_bcrypt: %q}}]\n", hash))
		lines, _, _ := strings.Cut(b.block(t, "sh", "\nchromium "), "\nchromium ")
		b.runs(t, "sh", "-ec", lines+"\necho What everybody may read")
		program := b.block(t, "js", "playwright")
		b.onPage(t, "Playwright, with a browser that trusts the CA", program)
		b.runs(t, abs(t, node()), "-e", program)
	})
}
