package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// A realClient is an HTTP client that finds the gate by the variables that robotsgate env prints.
type realClient struct {
	name     string
	works    []string // command that succeeds if the client can be used; nil: it can
	get      []string // command that prints status, header and body of the response to URL
	begin    string   // what else it needs in its shell
	lines    string   // the heading of its lines on the gate's page; empty: it has none
	socks    bool     // it speaks SOCKS5, too
	optional bool     // Debian has no package of it
	quick    bool     // starts fast enough for every run of the tests
}

// trustInChromium makes Chromium trust the CA.
const trustInChromium = `
mkdir -p "$HOME/.pki/nssdb" && certutil -d "sql:$HOME/.pki/nssdb" -N --empty-password && certutil -d "sql:$HOME/.pki/nssdb" -A -t C,, -n robotsgate -i "$NODE_EXTRA_CA_CERTS" || exit`

var realClients = []realClient{
	{name: "curl", lines: "curl", socks: true, quick: true,
		works: []string{"curl", "--version"},
		get:   []string{"curl", "-sS", "-i", "URL"}},
	{name: "wget", lines: "wget",
		works: []string{"wget", "--version"},
		get:   []string{"wget", "-S", "--content-on-error", "-O", "-", "URL"}},
	{name: "scrapy", lines: "Scrapy (it checks no certificates)",
		works: []string{"scrapy", "version"},
		get:   []string{"scrapy", "runspider", "-s", "ROBOTSTXT_OBEY=False", "-L", "ERROR", "-a", "url=URL", "testdata/clients/spider.py"}},
	{name: "requests", lines: "Python: requests", socks: true,
		works: []string{"/usr/bin/python3", "-c", "import requests, socks"},
		get:   []string{"/usr/bin/python3", "testdata/clients/get.py", "URL"}},
	{name: "httpx", lines: "Python: httpx, urllib, aiohttp with trust_env",
		works: []string{"/usr/bin/python3", "-c", "import httpx"},
		get:   []string{"/usr/bin/python3", "testdata/clients/get_httpx.py", "URL"}},
	{name: "aiohttp",
		works: []string{"/usr/bin/python3", "-c", "import aiohttp"},
		get:   []string{"/usr/bin/python3", "testdata/clients/get_aiohttp.py", "URL"}},
	{name: "fetch", lines: "Node 22.21, 24.5 or later", optional: true,
		works: []string{node(), "testdata/clients/fetch.cjs"},
		get:   []string{node(), "testdata/clients/fetch.cjs", "URL"}},
	{name: "undici", lines: "Node before that, with undici from npm", optional: true,
		works: []string{node(), "testdata/clients/undici.cjs"},
		get:   []string{node(), "testdata/clients/undici.cjs", "URL"}},
	{name: "HttpClient",
		works: []string{"java", "--describe-module", "jdk.compiler"},
		get:   []string{"sh", "testdata/clients/java.sh", "HttpClientGet", "URL"}},
	{name: "HttpURLConnection", lines: "Java",
		works: []string{"java", "--describe-module", "jdk.compiler"},
		get:   []string{"sh", "testdata/clients/java.sh", "ConnectionGet", "URL"}},
	{name: "go", lines: "Go, on Linux", quick: true, get: []string{"fetch", "URL"}},
	{name: "playwright", lines: "Chromium on Linux", socks: true, optional: true, begin: trustInChromium,
		works: []string{node(), "testdata/clients/playwright.cjs"},
		get:   []string{node(), "testdata/clients/playwright.cjs", "URL"}},
}

// node returns the command of the newest Node: the one that .ci/run installs from npm, since
// Debian's does not support NODE_USE_ENV_PROXY, or else the system's.
func node() string {
	if newer, _ := filepath.Glob("testdata/clients/node_modules/node-*/bin/node"); len(newer) > 0 {
		return newer[0]
	}
	return "node"
}

// TestRealClients runs unmodified clients behind the gate. Each must receive the allowed page with its annotations, and a
// refusal with its reason, over http and https, and by SOCKS5 where it speaks that. The lines for it on the gate's page
// must work. The origin's log proves that no denied request reached it.
func TestRealClients(t *testing.T) {
	t.Parallel()
	site := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n")
	page, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, site.Proxy+"/", http.StatusOK)
	lines := gatetest.PageLines(page)
	t.Run("clients", func(t *testing.T) {
		for _, c := range realClients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.mustWork(t)
				begins := []string{c.begin}
				if c.socks {
					begins = append(begins, `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY no_proxy NO_PROXY
export all_proxy=socks5h://`+strings.TrimPrefix(site.Proxy, "http://")+` ALL_PROXY=$all_proxy`+c.begin)
				}
				for i, begin := range begins {
					for _, scheme := range []string{"http", "https"} {
						// Only the gate's parent proxy resolves this name.
						url, query := scheme+"://shop.invalid", fmt.Sprintf("?for=%s%d", c.name, i)
						out := c.run(t, begin, site.Config, url+"/page.html"+query)
						expect(t, out, `\b200\b`, `(?i)Robots-Gate-Decision: allow;reason=no-match`, `(?i)Robots-Gate-Tags: noindex;src=meta`, `What everybody may read`)
						if want := "GET " + url + "/page.html" + query; !strings.Contains(gatetest.Read(t, site.Log), want) {
							t.Errorf("the origin did not receive %q", want)
						}
						out = c.run(t, begin, site.Config, url+"/private/plans.html"+query)
						expect(t, out, `\b403\b`, `(?i)Robots-Gate-Decision: deny;reason=rule`, `(?i)Proxy-Status: robotsgate;error=http_request_denied`,
							`Line 2 of https?://shop\.invalid/robots\.txt says .*Disallow: /private/`)
					}
				}
				if c.lines != "" {
					c.runLines(t, lines[c.lines], gatetest.Read(t, site.CA))
				}
			})
		}
	})
	if log := gatetest.Read(t, site.Log); strings.Contains(log, "/private/") {
		t.Errorf("the origin received denied requests:\n%s", log)
	}
}

// mustWork ends the test if the client is not installed, or is only for long runs.
func (c *realClient) mustWork(t *testing.T) {
	t.Helper()
	if !c.quick {
		gatetest.Long(t)
	}
	if c.works == nil {
		return
	}
	out, err := exec.Command(c.works[0], c.works[1:]...).CombinedOutput()
	switch {
	case err == nil:
	case c.optional:
		t.Skipf("%s is not installed (%v): npm has it", c.name, err)
	default:
		t.Skipf("%s is not installed: %v\n%s", c.name, err, out)
	}
}

// run runs the client in a shell that has evaluated the output of robotsgate env, and then the command begin. It returns
// the client's output. Proxies and files such as ~/.curlrc of the machine have no effect.
func (c *realClient) run(t *testing.T, begin, config, url string) string {
	t.Helper()
	args := []string{"-c", `vars=$(robotsgate env -c "$0") || exit; eval "$vars"` + "\n" + begin + "\nexec \"$@\"", config}
	for _, a := range c.get {
		args = append(args, strings.ReplaceAll(a, "URL", url))
	}
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Env = append(shellEnv(t.TempDir()), "PYTHONDONTWRITEBYTECODE=1") // Python leaves no files in testdata
	out, err := cmd.CombinedOutput()
	t.Logf("%s: %v\n%s", strings.Join(cmd.Args[4:], " "), err, out) // some clients fail on a refusal
	return string(out)
}

// shellEnv returns the variables of a shell with a home directory. Its desktop is one where Chromium ignores the proxy
// variables.
func shellEnv(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=" + os.Getenv("GORACE"), "XDG_CURRENT_DESKTOP=GNOME"}
}

// runLines runs the lines of the gate's page for the client, with another URL.
func (c *realClient) runLines(t *testing.T, lines []string, ca string) {
	t.Helper()
	if len(lines) == 0 {
		t.Errorf("the gate's page has no lines for %q", c.lines)
	}
	const url = "https://shop.invalid/page.html"
	replace := strings.NewReplacer("https://example.com/", url, "./your-program", "fetch "+url,
		"YourProgram.java", abs(t, "testdata/clients/ConnectionGet.java")+" "+url,
		"python3 -c", "/usr/bin/python3 -c", // the Python that Debian's packages are for
		" node -e", " "+abs(t, node())+" -e", "chromium --headless", "chromium --headless --no-sandbox")
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "ca.pem"), ca)
	if err := os.Symlink(abs(t, "testdata/clients/node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", replace.Replace(strings.Join(lines, "\n")))
	cmd.Dir, cmd.Env = dir, shellEnv(dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "What everybody may read") {
		t.Errorf("%s\n%v\n%s", strings.Join(cmd.Args[2:], "\n"), err, out)
	}
}

// TestPlaywrightLogin runs the program of docs/clients.md for Playwright, behind a gate whose clients all need a login.
func TestPlaywrightLogin(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "certutil")
	gatetest.Needs(t, "chromium")
	if _, err := os.Stat("testdata/clients/node_modules/playwright-core"); err != nil {
		t.Skip("playwright-core is not installed: npm has it")
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	site := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(),
		fmt.Sprintf("admin: {listen: \"\"}\nunknown_clients: refuse\ncrawlers: [{name: news, login: {user: news, password_bcrypt: %q}}]\n", hash))
	program := regexp.MustCompile("(?ms)^```js\n([^`]*require\\(\"playwright\"\\).*?)^```$").FindStringSubmatch(gatetest.Read(t, "../../docs/clients.md"))
	if program == nil {
		t.Fatal("docs/clients.md has no program for Playwright")
	}
	text := strings.NewReplacer("127.0.0.1:9309", strings.TrimPrefix(site.Proxy, "http://"), "https://example.com/", "https://shop.invalid/page.html",
		"USER", "news", "PASSWORD", "correct-horse", `require("playwright")`, `require("playwright-core")`,
		".launch({\n", `.launch({ args: ["--no-sandbox"], executablePath: "/usr/bin/chromium",`+"\n").Replace(program[1])
	dir := t.TempDir()
	if err := os.Symlink(abs(t, "testdata/clients/node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "NODE_EXTRA_CA_CERTS=$1"+trustInChromium+"\n"+`exec "$2" -e "$3"`, "sh", site.CA, abs(t, node()), text)
	cmd.Dir, cmd.Env = dir, shellEnv(dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "What everybody may read") {
		t.Errorf("%v\n%s", err, out)
	}
}

func expect(t *testing.T, got string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(got) {
			t.Errorf("the client's output does not match %s", p)
		}
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	if !strings.Contains(path, "/") {
		return path // a command on the PATH
	}
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
