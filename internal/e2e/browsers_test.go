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

// A browserSite is a gate with a folder in which the lines of docs/browsers.md are run, and which
// is the home directory of the browsers.
type browserSite struct {
	*gatetest.Site
	dir   string
	doc   string              // docs/browsers.md, for this gate and a page of its site
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
	replace := strings.NewReplacer(b.replacements()...).Replace
	page, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, b.Proxy+"/", http.StatusOK)
	b.doc, b.lines = replace(gatetest.Read(t, "../../docs/browsers.md")), gatetest.PageLines(replace(page))
	return b
}

// replacements returns what is replaced in the documentation and on the gate's page: pairs of old
// and new texts.
func (b *browserSite) replacements() []string {
	all := []string{
		"127.0.0.1:9309", strings.TrimPrefix(b.Proxy, "http://"), "https://example.com/", "https://shop.invalid/page.html",
		"USER", "news", "PASSWORD", "correct-horse", "firefox --headless", "firefox-esr --headless",
		// The packages without a browser use Debian's.
		`require("playwright")`, `require("playwright-core")`, `require("puppeteer")`, `require("puppeteer-core")`,
		".launch({\n", `.launch({ executablePath: "/usr/bin/chromium",` + "\n",
	}
	if os.Getuid() != 0 {
		return all
	}
	// Chromium refuses to run its sandbox as root.
	return append(all, "chromium --headless", "chromium --headless --no-sandbox", `args: ["`, `args: ["--no-sandbox", "`,
		`options.add_argument("--headless")`, `options.add_argument("--headless"); options.add_argument("--no-sandbox")`)
}

// block returns the block of a language, the one that contains a text.
func (b *browserSite) block(t *testing.T, language, has string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(b.doc, -1) {
		if strings.Contains(m[1], has) {
			return m[1]
		}
	}
	t.Fatalf("docs/browsers.md has no block of %s with %s", language, has)
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
			t.Errorf("docs/browsers.md does not have %q of the gate's page in\n%s", line, block)
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

// doctor runs doctor for some clients and returns its report. The variables of its shell have a
// login, which Chromium ignores.
func (b *browserSite) doctor(t *testing.T, clients string) string {
	t.Helper()
	return b.run(t, "sh", "-c", `vars=$(echo correct-horse | robotsgate env -c "$0" --login news) || exit; eval "$vars"
robotsgate doctor -c "$0" $1 || true`, b.Config, clients)
}

// chromium checks what doctor reports of Chromium, and follows its advice on trust.
func (b *browserSite) chromium(t *testing.T, want string) {
	t.Helper()
	got := b.doctor(t, "chromium")
	for range 5 { // on a busy machine Chromium may be too slow
		if strings.Contains(got, "does not end within") {
			got = b.doctor(t, "chromium")
		}
	}
	if !regexp.MustCompile("\nchromium +" + want).MatchString(got) {
		t.Errorf("doctor printed\n%s\nwant %s", got, want)
	}
	if advice := regexp.MustCompile(`(?m)^ +(mkdir .*)`).FindStringSubmatch(got); advice != nil {
		b.run(t, "sh", "-ec", advice[1])
	}
}

// trusts makes the browsers of the home directory trust the gate, and makes a profile for Firefox.
func (b *browserSite) trusts(t *testing.T) {
	t.Helper()
	for _, browser := range []string{"\nchromium ", "\nfirefox-esr "} {
		lines, _, _ := strings.Cut(b.block(t, "sh", browser), browser)
		b.run(t, "sh", "-ec", lines)
	}
}

// mustHaveModule ends a test if a package of npm is not installed.
func mustHaveModule(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat("testdata/clients/node_modules/" + name); err != nil {
		t.Skipf("%s is not installed: npm has it", name)
	}
}

// TestBrowsers runs the lines of docs/browsers.md with real browsers behind a gate whose clients
// need no login.
func TestBrowsers(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "certutil")
	b := newBrowserSite(t, "")
	t.Run("doctor", func(t *testing.T) {
		gatetest.Needs(t, "chromium")
		b.chromium(t, `no +goes through the gate, but does not trust its CA\n +mkdir -p ~/\.pki/nssdb && certutil `)
		if log := b.Gate.Log.String(); strings.Contains(log, "does not trust the CA") {
			t.Errorf("the log warns of what doctor tries:\n%s", log)
		}
		b.chromium(t, `ok +goes through the gate and trusts its CA\n`)
	})
	t.Run("chromium", func(t *testing.T) {
		gatetest.Needs(t, "chromium")
		lines := b.block(t, "sh", "\nchromium ")
		b.onPage(t, "Chromium on Linux", lines)
		b.runs(t, "sh", "-ec", lines)
	})
	t.Run("firefox", func(t *testing.T) {
		gatetest.Needs(t, "firefox-esr")
		lines := b.block(t, "sh", "\nfirefox-esr ")
		b.onPage(t, "Firefox on Linux", lines)
		b.run(t, "sh", "-ec", lines)
		if log := gatetest.Read(t, b.Log); !regexp.MustCompile(`GET https://shop\.invalid/page\.html .*Firefox`).MatchString(log) {
			t.Errorf("the origin received\n%s", log)
		}
	})
	t.Run("puppeteer with Firefox", func(t *testing.T) {
		mustHaveModule(t, "puppeteer-core")
		gatetest.Needs(t, "firefox-esr")
		program := regexp.MustCompile(`(?m)^ *(args: |await page\.authenticate).*\n`).ReplaceAllLiteralString(b.block(t, "js", `require("puppeteer`), "")
		program = strings.Replace(program, "/usr/bin/chromium\",\n", "/usr/bin/firefox-esr\",\n"+b.block(t, "js", `browser: "firefox"`), 1)
		b.runs(t, abs(t, node()), "-e", program)
	})
	t.Run("selenium", func(t *testing.T) {
		gatetest.Needs(t, "chromedriver")
		if exec.Command("/usr/bin/python3", "-c", "import selenium").Run() != nil {
			t.Skip("selenium is not installed: Debian's package python3-selenium has it")
		}
		program := b.block(t, "python", "selenium")
		b.onPage(t, "Selenium for Python, with a browser that trusts the CA", program)
		b.runs(t, "/usr/bin/python3", "-c", program)
	})
}

// TestBrowserLogins runs the lines of docs/browsers.md that send a login, behind a gate whose
// clients all need one.
func TestBrowserLogins(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "certutil")
	gatetest.Needs(t, "chromium")
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowserSite(t, fmt.Sprintf("unknown_clients: refuse\ncrawlers: [{name: news, login: {user: news, password_bcrypt: %q}}]\n", hash))
	b.trusts(t)
	t.Run("doctor", func(t *testing.T) {
		b.chromium(t, `no +goes through the gate and trusts its CA, but is refused\n.*\n +Chromium sends none from a command line: `)
	})
	t.Run("doctor without a browser", func(t *testing.T) {
		got := strings.NewReplacer(append(b.replacements(), b.CA, "ca.pem")...).Replace(b.doctor(t, "firefox playwright puppeteer selenium"))
		for client, lines := range b.lines {
			if !regexp.MustCompile("^(Firefox on|Playwright|Puppeteer|Selenium)").MatchString(client) {
				continue
			}
			for _, line := range lines {
				if !strings.Contains(got, line) {
					t.Errorf("doctor does not print %q of the gate's page:\n%s", line, got)
				}
			}
		}
	})
	t.Run("run", func(t *testing.T) {
		// On this desktop Chromium ignores the proxy variables.
		b.runs(t, "sh", "-ec", "export XDG_CURRENT_DESKTOP=GNOME\n"+b.block(t, "sh", "\nrobotsgate run "))
	})
	t.Run("playwright", func(t *testing.T) {
		mustHaveModule(t, "playwright-core")
		program := b.block(t, "js", "playwright")
		b.onPage(t, "Playwright, with a browser that trusts the CA", program)
		b.runs(t, abs(t, node()), "-e", program)
	})
	// Playwright for Python is not in Debian. The program runs with a module in its place, and
	// must give launch the options of the program for Node.
	t.Run("playwright for Python", func(t *testing.T) {
		got := b.run(t, "/usr/bin/python3", "-c", b.block(t, "python", "playwright"))
		want := fmt.Sprintf(`{"proxy": {"server": "%s", "username": "news", "password": "correct-horse"}}`, b.Proxy)
		if got, _, _ = strings.Cut(got, "\n"); got != want {
			t.Errorf("got the options %s, want %s", got, want)
		}
	})
	puppeteer := b.block(t, "js", `require("puppeteer`)
	t.Run("puppeteer", func(t *testing.T) {
		mustHaveModule(t, "puppeteer-core")
		b.onPage(t, "Puppeteer, with a browser that trusts the CA", puppeteer)
		b.runs(t, abs(t, node()), "-e", puppeteer)
	})
}
