package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// TestOwnPageLines runs the lines for each client on the gate's own page, with another URL.
func TestOwnPageLines(t *testing.T) {
	t.Parallel()
	runOwnPageLines(t, "")
}

// TestOwnPageLinesWithLogin runs the lines of a gate whose clients all need a login.
func TestOwnPageLinesWithLogin(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	runOwnPageLines(t, fmt.Sprintf("unknown_clients: refuse\ncrawlers: [{name: news, login: {user: news, password_bcrypt: %q}}]\n", hash))
}

// runOwnPageLines runs the lines of a gate with these crawlers.
func runOwnPageLines(t *testing.T, crawlers string) {
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n"+crawlers).Proxy
	page, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate+"/", http.StatusOK)
	pem, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate+"/ca.pem", http.StatusOK)
	lines := gatetest.PageLines(page)
	if crawlers == "" == strings.Contains(page, "USER:PASSWORD") {
		t.Errorf("with the crawlers %q the page has\n%s", crawlers, page)
	}
	replace := strings.NewReplacer("USER:PASSWORD", "news:correct-horse", "=USER ", "=news ", "=PASSWORD ", "=correct-horse ", "https://example.com/", "https://shop.invalid/page.html",
		"python3 -c", "/usr/bin/python3 -c", // the Python that Debian's packages are for
		"./your-program", "fetch https://shop.invalid/page.html",
		"YourProgram.java", abs(t, "testdata/clients/ConnectionGet.java")+" https://shop.invalid/page.html",
		" node -e", " "+abs(t, node())+" -e")
	run := func(client string, works ...string) {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if client != "curl" {
				gatetest.Long(t)
			}
			if out, err := exec.Command(works[0], works[1:]...).CombinedOutput(); err != nil && strings.HasPrefix(client, "Node") {
				t.Skipf("not installed (%v %s): npm has it", err, out)
			} else if err != nil {
				t.Skipf("not installed: %v %s", err, out)
			}
			if len(lines[client]) == 0 {
				t.Fatalf("the page has no lines for this client:\n%s", page)
			}
			dir := t.TempDir()
			gatetest.Write(t, filepath.Join(dir, "ca.pem"), pem)
			if modules := abs(t, "testdata/clients/node_modules"); client == "Node before that, with undici from npm" {
				if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", replace.Replace(strings.Join(lines[client], "\n")))
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
			out, err := cmd.CombinedOutput()
			saved, _ := os.ReadFile(filepath.Join(dir, "page.html")) // by aria2
			if got := string(out) + string(saved); err != nil || !strings.Contains(got, "What everybody may read") {
				t.Errorf("%s\n%v\n%s", strings.Join(cmd.Args[2:], "\n"), err, got)
			}
		})
	}
	run("curl", "curl", "--version")
	run("wget", "wget", "--version")
	run("wget2", "wget2", "--version")
	run("Scrapy (it checks no certificates)", "scrapy", "version")
	run("Python: requests", "/usr/bin/python3", "-c", "import requests")
	run("Python: httpx, urllib, aiohttp with trust_env", "/usr/bin/python3", "--version")
	run("Node 22.21, 24.5 or later", node(), "testdata/clients/fetch.cjs")
	run("Node before that, with undici from npm", node(), "-e", `require("./testdata/clients/node_modules/undici")`)
	run("Go, on Linux", "true")
	if crawlers == "" { // Java sends no login
		run("Java", "java", "--describe-module", "jdk.compiler")
	}
	run("PHP", "php", "-r", "curl_init();")
	run("aria2", "aria2c", "--version")
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

// pacQuestions are URLs, their hosts, and whether /proxy.pac must name the gate for them.
var pacQuestions = []struct {
	url, host string
	gate      bool
}{
	{"http://shop.example/x", "shop.example", true},
	{"https://shop.example/", "shop.example", true},
	{"http://robotsgate.invalid/", "robotsgate.invalid", true},
	{"http://localhost:8000/", "localhost", false},
	{"http://127.0.0.1:8000/", "127.0.0.1", false},
	{"http://[::1]:8000/", "::1", false},
	{"http://127.0.0.1.evil.example/", "127.0.0.1.evil.example", true},
	{"http://127.evil/", "127.evil", true},
	{"http://localhost.example/", "localhost.example", true},
	{"GATE/ca.pem", "127.0.0.1", false},
}

// TestConfigurationScript calls the function of /proxy.pac as a browser does.
func TestConfigurationScript(t *testing.T) {
	if err := exec.Command("node", "--version").Run(); err != nil {
		t.Skip("node is not installed: Debian's package nodejs has it")
	}
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n").Proxy
	script, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate+"/proxy.pac", http.StatusOK)
	var calls, want strings.Builder
	for _, q := range pacQuestions {
		fmt.Fprintf(&calls, "console.log(FindProxyForURL(%q, %q))\n", strings.Replace(q.url, "GATE", gate, 1), q.host)
		proxy := "DIRECT"
		if q.gate {
			proxy = "PROXY " + strings.TrimPrefix(gate, "http://")
		}
		fmt.Fprintln(&want, proxy)
	}
	out, err := exec.Command("node", "-e", script+calls.String()).CombinedOutput()
	if err != nil || string(out) != want.String() {
		t.Errorf("%v: got\n%s\nwant\n%s", err, out, &want)
	}
}
