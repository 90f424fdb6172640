package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestReadmeShell runs the documentation's lines for shells in a demonstration. Their addresses are
// those of its gate.
func TestReadmeShell(t *testing.T) {
	gatetest.Needs(t, "curl")
	dir, demo := t.TempDir(), gatetest.ServeDemo(t)
	path := readersPath(t, dir, demo)
	for _, program := range []string{"scraper", "bin/scrapy"} {
		file := filepath.Join(dir, program)
		gatetest.Write(t, file, "#!/bin/sh\nexec curl -s -o /dev/null -w '%{http_code}\\n' http://192.168.0.1/\n")
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const refused = "curl -s -o /dev/null -w '%{http_code}\\n' https://shop.example/private/plans.html"
	for _, c := range []struct {
		shell, block string // the beginning of the block's lines
		lines        string // of the block; all others are left out
		then         string // what is typed next
		want         string // in the output
	}{
		{"sh", `eval "$(robotsgate env)"`, `sh, bash|doctor`, refused, "comes through\n403\n"},
		{"bash", `eval "$(robotsgate env)"`, `sh, bash`, refused, "403\n"},
		{"fish", `eval "$(robotsgate env)"`, `fish`, refused, "403\n"},
		{"sh", "robotsgate run --token", ``, "", "1 denied"},
		{"sh", "curl -o ca.pem http://127.0.0.1:9309/ca.pem\ncurl -o bundle.pem ", ``,
			"curl -s -x $PROXY --cacert ca.pem https://shop.example/offers.html && head -1 bundle.pem", "\n# robotsgate: the system's certificate"},
		{"sh", `eval "$(curl `, `curl`, refused, "403\n"},
		{"bash", `eval "$(curl `, `curl`, refused, "403\n"},
		{"dash", `eval "$(curl `, `curl`, "set -eu; " + refused, "403\n"},
		{"zsh", `eval "$(curl `, `curl`, refused, "403\n"},
		{"sh", "echo 'data_dir: trust'", `^(echo|robotsgate) `, "cmp ca.pem trust/ca.pem && cat wgetrc", "ca_certificate = /trust/bundle.pem\n"},
	} {
		t.Run(c.block+" in "+c.shell, func(t *testing.T) {
			gatetest.Needs(t, c.shell)
			text, selected := "", regexp.MustCompile(c.lines)
			for _, block := range blocks(t, "sh") {
				if text == "" && strings.HasPrefix(block, c.block) {
					for line := range strings.Lines(block) {
						if selected.MatchString(line) {
							text += line
						}
					}
				}
			}
			if text == "" {
				t.Fatal("the documentation has no such lines")
			}
			address := strings.TrimPrefix(demo.Proxy, "http://")
			cmd := exec.Command(c.shell, "-c", strings.NewReplacer("gate.internal:9309", address, "127.0.0.1:9309", address).Replace(text)+c.then)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + path, "HOME=" + dir, "PROXY=" + demo.Proxy, "GORACE=" + os.Getenv("GORACE")}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.want) {
				t.Errorf("%v: typed\n%s%s\ngot\n%s", err, text, c.then, out)
			}
		})
	}
}

// TestReadmeCatalogue crawls the catalogue of the sample site with the spider of docs/clients.md, which says how many
// requests that takes.
func TestReadmeCatalogue(t *testing.T) {
	gatetest.Needs(t, "scrapy")
	dir := t.TempDir()
	for _, program := range blocks(t, "python") {
		if strings.Contains(program, "class Catalogue") {
			gatetest.Write(t, filepath.Join(dir, "catalogue.py"), program)
		}
	}
	line := regexp.MustCompile(`(?m)^(robotsgate demo -- scrapy .*?) +# (.*)$`).FindStringSubmatch(gatetest.Read(t, "docs/clients.md"))
	if line == nil {
		t.Fatal("docs/clients.md does not crawl the catalogue")
	}
	cmd := exec.Command("sh", "-c", strings.Replace(line[1], "-L ERROR", "-L INFO", 1)) // INFO: with the reason of its end
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "robotsgate: "+line[2]+"\n") {
		t.Errorf("%v: %s printed %s, want %s", err, line[1], out, line[2])
	}
	if n := strings.Count(gatetest.Read(t, filepath.Join(dir, "titles.csv")), "\n"); n != 182 { // with the names of columns
		t.Errorf("titles.csv has %d lines, want 182", n)
	}
}

// TestReadmeInstall installs the program and starts it, as README.md says.
func TestReadmeInstall(t *testing.T) {
	gatetest.Long(t)
	dir := t.TempDir()
	install := exec.Command("go", "install", ".")
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false") // others would compile everything again
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "robotsgate"), "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "robotsgate ") {
		t.Errorf("%v: %s", err, out)
	}
	line := regexp.MustCompile(`(?m)^go run \. demo -- curl \S+`).FindString(gatetest.Read(t, "README.md"))
	if out, err := exec.Command("sh", "-c", line).Output(); err != nil || !strings.Contains(string(out), "Refused by robots rules") {
		t.Errorf("%v: %s printed %s", err, line, out)
	}
}
