package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// A realClient is a program as people run it, which knows of the gate only by
// the variables that robotsgate env prints.
type realClient struct {
	name    string
	install string   // Debian's package
	works   []string // a command that succeeds where the client can be used
	get     []string // a command that prints the response to URL
}

var realClients = []realClient{
	{"curl", "curl", []string{"curl", "--version"}, []string{"curl", "-sS", "-i", "URL"}},
	{"wget", "wget", []string{"wget", "--version"}, []string{"wget", "-S", "--content-on-error", "-O", "-", "URL"}},
	{"wget2", "wget2", []string{"wget2", "--version"}, []string{"wget2", "-S", "--content-on-error", "-O", "-", "URL"}},
	{"scrapy", "python3-scrapy", []string{"scrapy", "version"},
		[]string{"scrapy", "runspider", "-s", "ROBOTSTXT_OBEY=False", "-L", "ERROR", "-a", "url=URL", "testdata/clients/spider.py"}},
	{"requests", "python3-requests", []string{"/usr/bin/python3", "-c", "import requests"},
		[]string{"/usr/bin/python3", "testdata/clients/get.py", "URL"}},
	{"node", "npm", []string{"node", "testdata/clients/get.cjs"}, []string{"node", "testdata/clients/get.cjs", "URL"}},
	{"go", "", []string{"true"}, []string{"fetch", "URL"}},
}

// TestRealClients sends clients through the gate as they come. Each must get
// the allowed page with its annotations, and a refusal that says why; the
// origin's log proves that what was refused never arrived.
func TestRealClients(t *testing.T) {
	dir := t.TempDir()
	logFile := filepath.Join(dir, "origin.log")
	config := startForClients(t, "testdata/clients/site", dir)
	t.Run("clients", func(t *testing.T) {
		for _, c := range realClients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.mustWork(t)
				for _, scheme := range []string{"http", "https"} {
					// A name that no resolver knows: the gate's parent proxy does.
					site := scheme + "://shop.invalid"
					c.getsPage(t, config, site+"/page.html?for="+c.name)
					c.isRefused(t, config, site+"/private/plans.html?for="+c.name)
				}
				log := read(t, logFile)
				for _, scheme := range []string{"http", "https"} {
					if want := "GET " + scheme + "://shop.invalid/page.html?for=" + c.name; !strings.Contains(log, want) {
						t.Errorf("%q never arrived at the origin", want)
					}
				}
			})
		}
	})
	if log := read(t, logFile); strings.Contains(log, "/private/") {
		t.Errorf("requests that are denied have arrived at the origin:\n%s", log)
	}
}

// startForClients starts an origin that serves site, with its log in dir, and a
// gate. It returns a configuration for robotsgate env, which names the port that
// the gate has got.
func startForClients(t *testing.T, site, dir string) string {
	t.Helper()
	origin, err := gatetest.StartOrigin(site, filepath.Join(dir, "origin.log"), filepath.Join(dir, "origin-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	configure := func(name, listen string) string {
		file := filepath.Join(dir, name)
		text := fmt.Sprintf("listen: %s\ndata_dir: data\nadmin: {listen: \"\"}\negress: {proxy: \"http://%s\", ca_file: origin-ca.pem}\n", listen, origin.HTTP)
		write(t, file, text)
		return file
	}
	cmd := exec.Command("robotsgate", "serve", "-c", configure("gate.yaml", "127.0.0.1:0"))
	gate, err := gatetest.StartGate(cmd, t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	})
	return configure("env.yaml", strings.TrimPrefix(gate.Proxy, "http://"))
}

// mustWork skips the test where the client is not on the machine. With
// ROBOTSGATE_REQUIRE_CLIENTS=1 that is a failure for those that can be
// installed as they are.
func (c *realClient) mustWork(t *testing.T) {
	t.Helper()
	out, err := exec.Command(c.works[0], c.works[1:]...).CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("ROBOTSGATE_REQUIRE_CLIENTS") == "1" && c.name != "node":
		t.Fatalf("%s can't be used: %v\n%s\ninstall Debian's package %s", c.name, err, out, c.install)
	default:
		t.Skipf("%s can't be used here (%v): Debian's package %s has it", c.name, err, c.install)
	}
}

// run runs the client in a shell that has evaluated what robotsgate env
// prints, and returns all the client prints.
func (c *realClient) run(t *testing.T, config, url string) string {
	t.Helper()
	args := []string{"-c", `vars=$(robotsgate env -c "$0") || exit; eval "$vars"; exec "$@"`, config}
	for _, a := range c.get {
		args = append(args, strings.ReplaceAll(a, "URL", url))
	}
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	// Nothing of the machine's own settings: not its proxies, nor a ~/.curlrc.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=" + os.Getenv("GORACE"),
		"PYTHONDONTWRITEBYTECODE=1"} // nor anything left behind in testdata
	out, err := cmd.CombinedOutput()
	t.Logf("%s: %v\n%s", strings.Join(cmd.Args[4:], " "), err, out) // a refusal may be an error to it
	return string(out)
}

func (c *realClient) getsPage(t *testing.T, config, url string) {
	t.Helper()
	expect(t, c.run(t, config, url), `\b200\b`, `(?i)Robots-Gate-Decision: allow;reason=no-match`,
		`(?i)Robots-Gate-Tags: noindex;src=meta`, `What everybody may read`)
}

func (c *realClient) isRefused(t *testing.T, config, url string) {
	t.Helper()
	out := c.run(t, config, url)
	expect(t, out, `\b403\b`, `(?i)Robots-Gate-Decision: deny;reason=rule`, `(?i)Proxy-Status: robotsgate;error=http_request_denied`,
		`Line 2 of https?://shop\.invalid/robots\.txt says .*Disallow: /private/`)
	if strings.Contains(out, "What nobody may read") {
		t.Error("the client has got what robots.txt denies")
	}
}

func expect(t *testing.T, got string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(got) {
			t.Errorf("nothing in the client's output matches %s", p)
		}
	}
}

// write writes a file and makes its folder. It may be a program.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
