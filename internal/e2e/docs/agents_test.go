package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// TestAgentsExample decides by the list of docs/agents.md.
func TestAgentsExample(t *testing.T) {
	text := section(t, "docs/agents.md", "A list of what agents may reach")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	c, err := gate.ReadConfig("agents.yaml", strings.NewReader(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if warnings := c.Warnings(); len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	for _, request := range []struct{ crawler, method, url, want string }{
		{"coder", "GET", "https://proxy.golang.org/x", "robots"},
		{"coder", "POST", "https://proxy.golang.org/x", "deny not in the list"},
		{"coder", "POST", "https://github.com/example/repo.git/git-receive-pack", "robots"},
		{"coder", "GET", "https://github.com/another/repo", "deny not in the list"},
		{"coder", "GET", "https://go.dev/", "deny not in the list"},
		{"browser", "GET", "https://go.dev/", "robots"},
		{"browser", "GET", "https://en.wikipedia.org/wiki/Robots.txt", "robots"},
		{"browser", "GET", "https://pypi.org/", "deny not in the list"},
		{"browser", "GET", "https://evil.invalid/", "deny not in the list"},
	} {
		target, err := canonical.ParseURL(request.url)
		if err != nil {
			t.Fatal(err)
		}
		ask := policy.Request{Target: target, Method: request.method, Crawler: gate.Crawlers(c).Named(request.crawler)}
		got := "robots"
		if d, decided := policy.Overridden(c.Overrides, policy.Strict, ask, time.Now()); decided && d.Allow {
			got = "allow " + d.Note
		} else if decided {
			got = "deny " + d.Note
		}
		if got != request.want {
			t.Errorf("%+v: %s", request, got)
		}
	}
}

// TestAgentsList follows docs/agents.md from report mode to a list that is enforced, with an agent that
// asks for two pages the second time. It runs without --confine, which has tests of its own.
func TestAgentsList(t *testing.T) {
	gatetest.Needs(t, "curl", "jq")
	text := section(t, "docs/agents.md", "A list of what agents may reach")
	_, text, _ = strings.Cut(text, "\n### How to find the list\n")
	part := func(language string) string {
		_, rest, ok := strings.Cut(text, "\n```"+language+"\n")
		block, rest, closed := strings.Cut(rest, "```")
		if !ok || !closed {
			t.Fatalf("docs/agents.md has no further block of %s", language)
		}
		text = rest
		return strings.ReplaceAll(block, "--confine ", "")
	}
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin := gatetest.ServeFiles(t, filepath.Join(dir, "site"), dir)
	gatetest.Write(t, filepath.Join(dir, "report.yaml"), part("yaml")+"data_dir: data\negress: {allow_private: [127.0.0.0/8]}\n")
	agent := func(asks ...string) {
		gatetest.Write(t, filepath.Join(dir, "agent.sh"), "curl -s -o /dev/null -w 'status %{http_code}\n' "+strings.Join(asks, " ")+"\n")
	}
	run := func(lines string) string {
		cmd := exec.Command("sh", "-e", "-c", lines)
		cmd.Dir, cmd.Stderr = dir, t.Output()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v, typed\n%sgot\n%s", err, lines, out)
		}
		return string(out)
	}
	page := "http://" + origin.HTTP + "/page.txt"
	agent(page)
	asked := fmt.Sprintf("[\"default\",\"GET\",%q,\"/page.txt\"]\n", origin.HTTP)
	if out := run(part("sh")); out != "status 200\n"+asked {
		t.Errorf("in report mode: %s", out)
	}
	host, _, _ := strings.Cut(origin.HTTP, ":")
	gatetest.Write(t, filepath.Join(dir, "gate.yaml"), "overrides:\n- {hosts: [\""+host+"\"], action: robots, reason: reading}\n"+
		"- {hosts: [\"*\"], action: deny, reason: not in the list}\ndata_dir: data\negress: {allow_private: [127.0.0.0/8]}\n")
	agent(page, "-o", "/dev/null", "http://secret.invalid/")
	if out := run(part("sh")); !strings.HasSuffix(out, "is valid\nstatus 200\nstatus 403\n") {
		t.Errorf("with the list: %s", out)
	}
}
