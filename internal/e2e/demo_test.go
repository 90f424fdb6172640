package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestDemo pastes the lines that robotsgate demo prints, runs its examples, reads its status page, and ends it.
func TestDemo(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		gatetest.Missing(t, "curl is not installed: Debian's package curl has it")
	}
	dir := t.TempDir()
	environment := append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd := exec.CommandContext(t.Context(), "robotsgate", "demo")
	var out gatetest.Output
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	out.WaitFor(t, `For a browser: .*\n`)
	pasted := regexp.MustCompile(`(?m)^  (\. .*/env)$`).FindStringSubmatch(out.String())
	if pasted == nil {
		t.Fatalf("there is no line to paste:\n%s", &out)
	}
	shell := func(command string) string {
		sh := exec.CommandContext(t.Context(), "sh", "-c", pasted[1]+"\n"+command)
		sh.Env, sh.Dir = environment, dir
		got, err := sh.CombinedOutput()
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
		example := regexp.MustCompile(`(?m)^  (curl \S+ ` + regexp.QuoteMeta(url) + `) +# `).FindStringSubmatch(out.String())
		if example == nil {
			t.Errorf("no example requests %s", url)
			continue
		}
		if got := shell(example[1]); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s printed\n%s", example[1], got)
		}
	}
	admin := regexp.MustCompile(`(?m)^Status page: (\S+)$`).FindStringSubmatch(out.String())
	if admin == nil {
		t.Fatal("there is no link to the status page")
	}
	if got := shell("curl -s " + admin[1]); !strings.Contains(got, "Disallow: /private/") {
		t.Errorf("the status page does not show the rule that denied:\n%s", got)
	}

	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Errorf("the demonstration ended with %v:\n%s", err, &out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".[a-z]*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
}
