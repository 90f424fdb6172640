package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestReasons runs the programs of docs/clients.md that read why a request was refused, behind
// robotsgate demo.
func TestReasons(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	_, section, ok := strings.Cut(gatetest.Read(t, "../../docs/clients.md"), "\n## Reasons in programs\n")
	if !ok {
		t.Fatal("docs/clients.md has no such section")
	}
	blocks := regexp.MustCompile("(?ms)^```(python|js)\n(.*?)^```").FindAllStringSubmatch(section, 3)
	if len(blocks) != 3 {
		t.Fatalf("got %d programs, want 3", len(blocks))
	}
	python, script, middleware := blocks[0][2], blocks[1][2], blocks[2][2]
	const (
		detail = `403 Line 2 of https://shop.example/robots.txt says "Disallow: /private/", in the group for *. This is policy and no fault: another route or another try will not help.`
		tags   = `max-snippet;v=20;src=robots-tag;scope="*", noindex;src=meta;scope="robots"`
	)
	dir := t.TempDir()
	demo := func(command ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "robotsgate", append([]string{"demo", "--"}, command...)...)
		var out, errs bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", command[0], err, &errs)
		}
		return out.String(), errs.String()
	}

	for _, library := range []string{"requests", "httpx"} {
		t.Run(library, func(t *testing.T) {
			python3 := "python3"
			if exec.Command(python3, "-c", "import "+library).Run() != nil {
				python3 = "/usr/bin/python3" // Debian's, which has Debian's packages
			}
			if exec.Command(python3, "-c", "import "+library).Run() != nil {
				t.Skipf("%s is not installed: Debian's package python3-%[1]s has it", library)
			}
			program := strings.Replace(python, "import requests", "import "+library+" as requests", 1)
			if got, _ := demo(python3, "-c", program); got != detail+"\n"+tags+"\n" {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("Node_24", func(t *testing.T) {
		found, _ := filepath.Glob("testdata/clients/node_modules/node-*/bin/node")
		if len(found) == 0 {
			t.Skip("Node is not installed from npm, as .ci/run does")
		}
		if got, _ := demo(abs(t, found[0]), "-e", script); got != detail+"\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("Scrapy", func(t *testing.T) {
		gatetest.Needs(t, "scrapy")
		gatetest.Write(t, filepath.Join(dir, "robotsgate_tags.py"), middleware)
		gatetest.Write(t, filepath.Join(dir, "spider.py"), `
import scrapy
class Two(scrapy.Spider):
    name = "two"
    start_urls = ["https://shop.example/offers.html", "https://shop.example/private/plans.html"]
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {"robotsgate_tags.RobotsGate": 560}}
    def parse(self, response):
        print(response.meta["robots_tags"])
`)
		got, log := demo("env", "PYTHONPATH=.", "scrapy", "runspider", "-L", "WARNING", "spider.py")
		if got != "['max-snippet', 'noindex']\n" {
			t.Errorf("got %q", got)
		}
		if want := "refused: https://shop.example/private/plans.html: robots.txt line 2: Disallow: /private/\n"; strings.Count(log, "refused: https") != 1 || !strings.Contains(log, want) {
			t.Errorf("logged %q, want %q", log, want)
		}
	})
}
