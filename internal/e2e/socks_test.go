package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// socksClients are clients that reach the gate by SOCKS5: GATE is its address, with a login where ACCOUNT stands.
var socksClients = []struct {
	client realClient
	proxy  string // the value of all_proxy; empty: the command names the proxy
	login  bool   // it can send one
}{
	{client: realClient{name: "curl --socks5-hostname", install: "curl", quick: true, works: []string{"curl", "--version"},
		get: []string{"curl", "-sS", "-i", "--socks5-hostname", "ACCOUNTGATE", "URL"}}, login: true},
	// The address is one that curl has resolved: the gate does not use it.
	{client: realClient{name: "curl --socks5", install: "curl", quick: true, works: []string{"curl", "--version"},
		get: []string{"curl", "-sS", "-i", "--resolve", "shop.invalid:80:93.184.215.14", "--resolve", "shop.invalid:443:93.184.215.14", "--socks5", "ACCOUNTGATE", "URL"}}, login: true},
	{client: realClient{name: "curl with all_proxy", install: "curl", works: []string{"curl", "--version"},
		get: []string{"curl", "-sS", "-i", "URL"}}, proxy: "socks5h://ACCOUNTGATE", login: true},
	{client: realClient{name: "requests", install: "python3-requests and python3-socks", works: []string{"/usr/bin/python3", "-c", "import requests, socks"},
		get: []string{"/usr/bin/python3", "testdata/clients/get.py", "URL"}}, proxy: "socks5h://ACCOUNTGATE", login: true},
	{client: realClient{name: "httpx", install: "python3-httpx and python3-socksio", works: []string{"/usr/bin/python3", "-c", "import httpx, socksio"},
		get: []string{"/usr/bin/python3", "testdata/clients/get_httpx.py", "URL"}}, proxy: "socks5://ACCOUNTGATE", login: true},
	{client: realClient{name: "undici", install: "npm", optional: true, works: []string{node(), "testdata/clients/undici_socks.cjs"},
		get: []string{node(), "testdata/clients/undici_socks.cjs", "socks5://ACCOUNTGATE", "URL"}}, login: true},
	// Chromium sends no login by SOCKS.
	{client: realClient{name: "Playwright", install: "npm", optional: true, works: []string{node(), "testdata/clients/playwright_socks.cjs"},
		get: []string{node(), "testdata/clients/playwright_socks.cjs", "socks5://GATE", "URL"}}},
}

// TestSocksClients sends real clients through the gate by SOCKS5, without a login and with one.
func TestSocksClients(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"", "news:correct-horse@"} {
		settings := "admin: {listen: \"\"}\nlog: {audit: audit.jsonl}\n"
		if account != "" {
			settings += fmt.Sprintf("unknown_clients: refuse\ncrawlers: [{name: news, login: {user: news, password_bcrypt: %q}}]\n", hash)
		}
		dir := t.TempDir()
		site := gatetest.ServeSite(t, "testdata/clients/site", dir, settings)
		t.Run("account "+account, func(t *testing.T) {
			for _, c := range socksClients {
				if account != "" && !c.login {
					continue
				}
				t.Run(c.client.name, func(t *testing.T) {
					t.Parallel()
					c.client.mustWork(t)
					gate := strings.NewReplacer("ACCOUNT", account, "GATE", strings.TrimPrefix(site.Proxy, "http://"))
					client := c.client
					client.get = nil
					for _, arg := range c.client.get {
						client.get = append(client.get, gate.Replace(arg))
					}
					begin := `vars=$(robotsgate env -c "$0") || exit; eval "$vars"
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY`
					if c.proxy != "" {
						begin += "\nexport all_proxy=" + gate.Replace(c.proxy)
					}
					for _, scheme := range []string{"http", "https"} {
						query := "?for=" + strings.ReplaceAll(client.name, " ", "+")
						out := client.runWith(t, begin, nil, scheme+"://shop.invalid/page.html"+query, site.Config)
						expect(t, out, `\b200\b`, `(?i)Robots-Gate-Decision: allow;reason=no-match`, `What everybody may read`)
						out = client.runWith(t, begin, nil, scheme+"://shop.invalid/private/plans.html"+query, site.Config)
						expect(t, out, `\b403\b`, `(?i)Robots-Gate-Decision: deny;reason=rule`)
						if want := "GET " + scheme + "://shop.invalid/page.html" + query; !strings.Contains(gatetest.Read(t, site.Log), want) {
							t.Errorf("the origin did not receive %q", want)
						}
					}
				})
			}
		})
		if log := gatetest.Read(t, site.Log); strings.Contains(log, "/private/") {
			t.Errorf("the origin received denied requests:\n%s", log)
		}
		for line := range strings.Lines(gatetest.Read(t, filepath.Join(dir, "audit.jsonl"))) {
			if strings.Contains(line, `"method":"GET"`) && !strings.Contains(line, `"tunnel":true,"socks":true`) {
				t.Errorf("recorded: %s", line)
			}
		}
	}
}

// TestSocksWrongLogin: a client with a wrong login is refused before it can send a request.
func TestSocksWrongLogin(t *testing.T) {
	t.Parallel()
	gatetest.Needs(t, "curl")
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(),
		fmt.Sprintf("admin: {listen: \"\"}\nunknown_clients: refuse\ncrawlers: [{name: news, login: {user: news, password_bcrypt: %q}}]\n", hash))
	address := strings.TrimPrefix(gate.Proxy, "http://")
	for _, account := range []string{"", "news:wrong@"} {
		out, err := exec.CommandContext(t.Context(), "curl", "-sS", "-x", "socks5h://"+account+address, "http://shop.invalid/page.html").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "curl: (97)") {
			t.Errorf("account %q: %v %s", account, err, out)
		}
	}
	gate.Gate.Log.WaitFor(t, "SOCKS connections are refused: .*reason=login")
}

// TestSocksBrowser loads pages with Chromium by SOCKS5.
func TestSocksBrowser(t *testing.T) {
	t.Parallel()
	gatetest.Long(t)
	dir := t.TempDir()
	gate := gatetest.ServeSite(t, "testdata/clients/site", dir, "admin: {listen: \"\"}\n")
	address := strings.TrimPrefix(gate.Proxy, "http://")
	for url, want := range map[string]string{
		"http://shop.invalid/page.html":           "What everybody may read",
		"https://shop.invalid/page.html":          "What everybody may read",
		"https://shop.invalid/private/plans.html": "Refused by robots rules",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", `mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -N --empty-password
curl -s -o ca.pem "http://$0/ca.pem" && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n robotsgate -i ca.pem
chromium --headless --no-sandbox --proxy-server=socks5://$0 --dump-dom "$1"`, address, url)
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Environ(), "HOME="+cmd.Dir)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", url, err, out)
		}
	}
}

// TestSocksGit sends git by SOCKS5: it reads what the site answers at the path of a repository.
func TestSocksGit(t *testing.T) {
	t.Parallel()
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n")
	cmd := exec.CommandContext(t.Context(), "git", "-c", "http.proxy="+strings.Replace(gate.Proxy, "http://", "socks5h://", 1), "ls-remote", "http://shop.invalid/private/project.git")
	cmd.Env = append(cmd.Environ(), "GIT_TERMINAL_PROMPT=0", "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "403") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSocksLines runs the lines of docs/clients.md for SOCKS, with another URL.
func TestSocksLines(t *testing.T) {
	t.Parallel()
	gatetest.Long(t)
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n")
	pem, _ := gatetest.Request(t, gatetest.Client(t, ""), "GET", gate.Proxy+"/ca.pem", 200)
	_, section, _ := strings.Cut(gatetest.Read(t, "../../docs/clients.md"), "\n## SOCKS\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) < 2 {
		t.Fatalf("docs/clients.md has the lines %q", lines)
	}
	replace := strings.NewReplacer("127.0.0.1:9309", strings.TrimPrefix(gate.Proxy, "http://"), "https://example.com/", "https://shop.invalid/page.html",
		"python3 -c", "/usr/bin/python3 -c")
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", replace.Replace(line))
		cmd.Dir = t.TempDir()
		gatetest.Write(t, filepath.Join(cmd.Dir, "ca.pem"), pem)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "What everybody may read") {
			t.Errorf("%s\n%v\n%s", line, err, out)
		}
	}
}
