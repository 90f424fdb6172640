package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// A realClient is an HTTP client that finds the gate by the variables that robotsgate env prints.
type realClient struct {
	name     string
	install  string   // Debian package
	works    []string // command that succeeds if the client can be used
	get      []string // command that prints the response to URL
	kind     string   // name in the gate's log when the client rejects the certificate; empty: it checks none
	optional bool     // Debian has no package of it
	quick    bool     // starts fast enough for every run of the tests
}

var realClients = []realClient{
	{name: "curl", install: "curl", kind: "curl", quick: true,
		works: []string{"curl", "--version"},
		get:   []string{"curl", "-sS", "-i", "URL"}},
	{name: "wget", install: "wget", kind: "wget",
		works: []string{"wget", "--version"},
		get:   []string{"wget", "-S", "--content-on-error", "-O", "-", "URL"}},
	{name: "wget2", install: "wget2", kind: "wget2, a client with an https:// proxy, or one that robotsgate doctor has tried",
		works: []string{"wget2", "--version"},
		get:   []string{"wget2", "-S", "--content-on-error", "-O", "-", "URL"}},
	{name: "scrapy", install: "python3-scrapy",
		works: []string{"scrapy", "version"},
		get:   []string{"scrapy", "runspider", "-s", "ROBOTSTXT_OBEY=False", "-L", "ERROR", "-a", "url=URL", "testdata/clients/spider.py"}},
	{name: "requests", install: "python3-requests", kind: "requests, or Python's http.client",
		works: []string{"/usr/bin/python3", "-c", "import requests"},
		get:   []string{"/usr/bin/python3", "testdata/clients/get.py", "URL"}},
	{name: "fetch", install: "nodejs", kind: "Node", optional: true,
		works: []string{node(), "testdata/clients/fetch.cjs"},
		get:   []string{node(), "testdata/clients/fetch.cjs", "URL"}},
	{name: "undici", install: "npm", kind: "Node", optional: true,
		works: []string{node(), "testdata/clients/undici.cjs"},
		get:   []string{node(), "testdata/clients/undici.cjs", "URL"}},
	{name: "HttpClient", install: "default-jdk-headless", kind: "unknown",
		works: []string{"java", "--describe-module", "jdk.compiler"},
		get:   []string{"sh", "testdata/clients/java.sh", "HttpClientGet", "URL"}},
	{name: "HttpURLConnection", install: "default-jdk-headless", kind: "Java",
		works: []string{"java", "--describe-module", "jdk.compiler"},
		get:   []string{"sh", "testdata/clients/java.sh", "ConnectionGet", "URL"}},
	{name: "go", kind: "Go", quick: true, works: []string{"true"}, get: []string{"fetch", "URL"}},
}

// node returns the command of the newest Node: the one that .ci/run installs from npm, since
// Debian's does not support NODE_USE_ENV_PROXY, or else the system's.
func node() string {
	if newer, _ := filepath.Glob("testdata/clients/node_modules/node-*/bin/node"); len(newer) > 0 {
		return newer[0]
	}
	return "node"
}

// TestRealClients runs unmodified clients behind the gate. Each must receive the allowed page
// with its annotations, and a refusal with its reason. The origin's log proves that no denied
// request reached it.
func TestRealClients(t *testing.T) {
	t.Parallel()
	site := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n")
	t.Run("clients", func(t *testing.T) {
		for _, c := range realClients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.mustWork(t)
				for _, scheme := range []string{"http", "https"} {
					// Only the gate's parent proxy resolves this name.
					url := scheme + "://shop.invalid"
					c.getsPage(t, site.Config, url+"/page.html?for="+c.name)
					c.isRefused(t, site.Config, url+"/private/plans.html?for="+c.name)
				}
				log := gatetest.Read(t, site.Log)
				for _, scheme := range []string{"http", "https"} {
					if want := "GET " + scheme + "://shop.invalid/page.html?for=" + c.name; !strings.Contains(log, want) {
						t.Errorf("the origin did not receive %q", want)
					}
				}
			})
		}
	})
	if log := gatetest.Read(t, site.Log); strings.Contains(log, "/private/") {
		t.Errorf("the origin received denied requests:\n%s", log)
	}
}

// TestRealClientsWithoutTrust runs clients that do not trust the gate's CA. They must receive
// nothing, and the gate's log must say what to configure for each.
func TestRealClientsWithoutTrust(t *testing.T) {
	t.Parallel()
	for _, c := range realClients {
		if c.kind == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.mustWork(t)
			gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n")
			url := gate.Proxy
			out := c.runWith(t, "", []string{"http_proxy=" + url, "https_proxy=" + url, "HTTPS_PROXY=" + url, "NODE_USE_ENV_PROXY=1"}, "https://shop.invalid/page.html")
			if strings.Contains(out, "What everybody may read") {
				t.Fatal("the client does not check certificates")
			}
			gate.Gate.Log.WaitFor(t, `a client does not trust the CA" client=127\.0\.0\.1 kind="?`+regexp.QuoteMeta(c.kind)+`\b.* ca\.pem=`+url+`/ca\.pem`)
			if log := gate.Gate.Log.String(); strings.Contains(log, "bad record MAC") {
				t.Errorf("the log shows an error of decryption in place of the client's alert:\n%s", log)
			}
		})
	}
}

// mustWork ends the test if the client is not installed, or is only for long runs.
func (c *realClient) mustWork(t *testing.T) {
	t.Helper()
	if !c.quick {
		gatetest.Long(t)
	}
	out, err := exec.Command(c.works[0], c.works[1:]...).CombinedOutput()
	switch {
	case err == nil:
	case c.optional:
		t.Skipf("%s is not installed (%v): npm has it", c.name, err)
	default:
		t.Skipf("%s is not installed: %v\n%s\nDebian's package %s has it", c.name, err, out, c.install)
	}
}

// run runs the client in a shell that has evaluated the output of robotsgate env, and returns
// the client's output.
func (c *realClient) run(t *testing.T, config, url string) string {
	t.Helper()
	return c.runWith(t, `vars=$(robotsgate env -c "$0") || exit; eval "$vars"`, nil, url, config)
}

// runWith runs the client in a shell after the command begin, with these variables. Proxies
// and files such as ~/.curlrc of the machine have no effect.
func (c *realClient) runWith(t *testing.T, begin string, vars []string, url string, zero ...string) string {
	t.Helper()
	args := []string{"-c", begin + "\nexec \"$@\"", strings.Join(zero, "")}
	for _, a := range c.get {
		args = append(args, strings.ReplaceAll(a, "URL", url))
	}
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=" + os.Getenv("GORACE"),
		"PYTHONDONTWRITEBYTECODE=1"}, vars...) // Python leaves no files in testdata
	out, err := cmd.CombinedOutput()
	t.Logf("%s: %v\n%s", strings.Join(cmd.Args[4:], " "), err, out) // some clients fail on a refusal
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
		t.Error("the client received the disallowed page")
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
