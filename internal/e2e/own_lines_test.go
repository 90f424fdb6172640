package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestOwnPageLines runs the lines that the gate's own page has for each client,
// as they stand there but for the URL.
func TestOwnPageLines(t *testing.T) {
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n").Proxy
	page, err := gatetest.Get(gate + "/")
	if err != nil {
		t.Fatal(err)
	}
	pem, err := gatetest.Get(gate + "/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	lines := gatetest.PageLines(page)
	replace := strings.NewReplacer("https://example.com/", "https://shop.invalid/page.html",
		"python3 -c", "/usr/bin/python3 -c", // that of Debian's packages
		"./your-program", "fetch https://shop.invalid/page.html",
		"YourProgram.java", abs(t, "testdata/clients/ConnectionGet.java")+" https://shop.invalid/page.html",
		" node -e", " "+abs(t, node())+" -e")
	run := func(client string, works ...string) {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(works[0], works[1:]...).CombinedOutput(); err != nil && strings.HasPrefix(client, "Node") {
				t.Skipf("it can't be used here (%v %s): npm has it", err, out)
			} else if err != nil {
				gatetest.Missing(t, "it can't be used here: %v %s", err, out)
			}
			if len(lines[client]) == 0 {
				t.Fatalf("the page has no lines for it:\n%s", page)
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
			saved, _ := os.ReadFile(filepath.Join(dir, "page.html")) // as aria2 does
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
	run("Java", "java", "--describe-module", "jdk.compiler")
	run("PHP", "php", "-r", "curl_init();")
	run("aria2", "aria2c", "--version")
}

func abs(t *testing.T, path string) string {
	t.Helper()
	if !strings.Contains(path, "/") {
		return path // a command
	}
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConfigurationScript asks a browser's question of /proxy.pac, in JavaScript.
func TestConfigurationScript(t *testing.T) {
	if err := exec.Command("node", "--version").Run(); err != nil {
		t.Skip("no node to run it")
	}
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n").Proxy
	script, err := gatetest.Get(gate + "/proxy.pac")
	if err != nil {
		t.Fatal(err)
	}
	proxy := "PROXY " + strings.TrimPrefix(gate, "http://")
	for _, c := range []struct{ url, host, want string }{
		{"http://shop.example/x", "shop.example", proxy},
		{"https://shop.example/", "shop.example", proxy},
		{"http://robotsgate.invalid/", "robotsgate.invalid", proxy},
		{"http://localhost:8000/", "localhost", "DIRECT"},
		{"http://127.0.0.1:8000/", "127.0.0.1", "DIRECT"},
		{"http://[::1]:8000/", "::1", "DIRECT"},
		{"http://127.0.0.1.evil.example/", "127.0.0.1.evil.example", proxy},
		{"http://127.evil/", "127.evil", proxy},
		{"http://localhost.example/", "localhost.example", proxy},
		{gate + "/ca.pem", "127.0.0.1", "DIRECT"},
	} {
		out, err := exec.Command("node", "-e", script+"console.log(FindProxyForURL(process.argv[1], process.argv[2]))", c.url, c.host).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: got %q (%v), want %q", c.url, got, err, c.want)
		}
	}
}
