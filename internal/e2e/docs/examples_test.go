package docs

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"robotsgate/internal/cli"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
)

// documentation returns README.md and, after it, all pages of docs/.
func documentation(t *testing.T) string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in docs/: %v", err)
	}
	var text strings.Builder
	text.WriteString(gatetest.Read(t, "README.md"))
	for _, page := range pages {
		text.WriteString("\n" + gatetest.Read(t, page))
	}
	return text.String()
}

// blocks returns the documentation's fenced blocks of one language, README.md's first.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(documentation(t), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("the documentation has no block of %s", language)
	}
	return all
}

// TestReadmeConsole runs every command of README.md and docs/ that is shown with its output, in
// shells that use robotsgate demo.
func TestReadmeConsole(t *testing.T) {
	gatetest.Needs(t, "curl")
	dir, demo := t.TempDir(), gatetest.ServeDemo(t)
	path := readersPath(t, dir, demo)
	for _, block := range blocks(t, "console") {
		for example := range strings.SplitSeq("\n"+block, "\n$ ") {
			command, want, _ := strings.Cut(example, "\n")
			if command == "" {
				continue
			}
			t.Run(command, func(t *testing.T) {
				cmd := demo.Shell(command, dir)
				cmd.Env = append(cmd.Env, "PATH="+path)
				out, _ := cmd.CombinedOutput() // some commands fail on a refusal
				if got, want := settled(string(out)), settled(want); got != want {
					t.Errorf("got\n%s\nthe documentation has\n%s", got, want)
				}
			})
		}
	}
}

// readersPath returns a PATH that begins with a wrapper of robotsgate. Doctor and env get a
// configuration from it, since the gate of a demonstration has neither the usual port nor the usual
// data_dir.
func readersPath(t *testing.T, dir string, demo *gatetest.Demo) string {
	t.Helper()
	program, err := exec.LookPath("robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gate.yaml")
	gatetest.Write(t, file, fmt.Sprintf("listen: %s\ndata_dir: %s\n", strings.TrimPrefix(demo.Proxy, "http://"), demo.Dir))
	script := fmt.Sprintf(`#!/bin/sh
command=$1
shift
case $command in
doctor) exec %[1]s doctor -c %[2]s "$@" ;;
env) exec %[1]s env -c %[2]s "$@" ;;
*) exec %[1]s "$command" "$@" ;;
esac
`, program, file)
	bin := filepath.Join(dir, "bin")
	gatetest.Write(t, filepath.Join(bin, "robotsgate"), script)
	return bin + string(os.PathListSeparator) + os.Getenv("PATH")
}

// settled replaces parts that differ from run to run.
func settled(s string) string {
	for _, r := range []struct{ pattern, by string }{
		{`(?m)[ \r]+$`, ``},
		{`"[A-Z2-7]{26}"`, `"ID"`},
		{`age=\d+`, `age=0`},
		{`"age": \d+`, `"age": 0`},
		{`"fetched": "[^"]+"`, `"fetched": "THEN"`},
		{`127\.0\.0\.1:\d+`, `GATE`},
		{`\S+/(ca|bundle)\.pem`, `$1.pem`},
		{`until \d+-\d+-\d+`, `until THEN`},
	} {
		s = regexp.MustCompile(r.pattern).ReplaceAllString(s, r.by)
	}
	return strings.TrimSpace(s)
}

// TestReadmeLogin runs a gate with docs/deploy.md's example of logins, and
// sends a request through the proxy URL that the page gives for it.
func TestReadmeLogin(t *testing.T) {
	gatetest.Needs(t, "curl")
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin := gatetest.ServeFiles(t, filepath.Join(dir, "site"), dir)
	config := ""
	for _, block := range blocks(t, "yaml") {
		if strings.Contains(block, "password_bcrypt") {
			config = block
		}
	}
	gate := gatetest.Serve(t, dir, config+"listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlog: {audit: audit.jsonl}\negress: {allow_private: [127.0.0.0/8]}\n")
	example := regexp.MustCompile(`-x http://(\w+):(\S+)@127`).FindStringSubmatch(gatetest.Read(t, "docs/deploy.md"))
	if example == nil {
		t.Fatal("docs/deploy.md does not show a proxy's URL with a login")
	}
	for _, c := range []struct {
		user   *url.Userinfo
		status int
	}{{url.UserPassword(example[1], example[2]), 200}, {nil, 407}} {
		proxy, err := url.Parse(gate.Proxy)
		if err != nil {
			t.Fatal(err)
		}
		proxy.User = c.user
		client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
		resp, err := client.Get("http://" + origin.HTTP + "/page.txt")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("as %v: status %d, want %d", c.user, resp.StatusCode, c.status)
		}
	}
	for _, block := range blocks(t, "sh") {
		if !strings.HasPrefix(block, "curl -x http://news:") {
			continue
		}
		typed := strings.NewReplacer("127.0.0.1:9309", strings.TrimPrefix(gate.Proxy, "http://"), "http://example.com/", "http://"+origin.HTTP+"/page.txt").Replace(block)
		cmd := exec.Command("sh", "-c", typed+"\necho $http_proxy\n")
		cmd.Env, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}, t.Output()
		if out, err := cmd.Output(); err != nil || string(out) != "publichttp://"+example[1]+":"+example[2]+"@"+strings.TrimPrefix(gate.Proxy, "http://")+"\n" {
			t.Errorf("%v, typed\n%sgot\n%s", err, typed, out)
		}
	}
	if err := gate.Terminate(); err != nil {
		t.Errorf("the gate ends with %v", err)
	}
	if log := gatetest.Read(t, filepath.Join(dir, "audit.jsonl")); !strings.Contains(log, `"crawler":"news"`) {
		t.Errorf("the record does not name the crawler:\n%s", log)
	}
}

// TestReadmeCommands compares every command line in README.md and docs/ with the
// program's commands and options.
func TestReadmeCommands(t *testing.T) {
	parser, err := kong.New(&cli.Commands{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*kong.Node{}
	for _, n := range parser.Model.Children {
		known[n.Name] = n
		for _, under := range n.Children {
			known[n.Name+" "+under.Name] = under
		}
	}
	option := regexp.MustCompile(`\s--([a-z]+(?:-[a-z]+)*)`)
	mentioned := map[string]bool{}
	for _, m := range regexp.MustCompile(`\brobotsgate ([a-z]+(?:-[a-z]+)*)\b(.*)`).FindAllStringSubmatch(code(t), -1) {
		name, rest := m[1], m[2]
		if first, _, _ := strings.Cut(strings.TrimSpace(rest), " "); known[name+" "+first] != nil {
			mentioned[name] = true
			name += " " + first
		}
		n := known[name]
		if n == nil {
			t.Errorf("the documentation names the command %q, which does not exist", name)
			continue
		}
		mentioned[name] = true
		own, _, _ := strings.Cut(rest, " -- ") // then the options of another program follow
		for _, o := range option.FindAllStringSubmatch(own, -1) {
			if !slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == o[1] }) && o[1] != "help" {
				t.Errorf("the documentation gives robotsgate %s the option --%s, which does not exist", name, o[1])
			}
		}
	}
	for name := range known {
		if !mentioned[name] {
			t.Errorf("the documentation does not mention robotsgate %s", name)
		}
	}
}

// code returns the code blocks and code spans of the documentation, line by line.
func code(t *testing.T) string {
	text := documentation(t)
	fence := regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")
	var all []string
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, "\n")
}

// TestReadmeConfiguration loads the configurations in the documentation and checks that the keys
// in its text exist.
func TestReadmeConfiguration(t *testing.T) {
	for i, block := range blocks(t, "yaml") {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "fleet.key"), make([]byte, 32), 0o600); err != nil {
			t.Fatal(err)
		}
		gatetest.Write(t, filepath.Join(filepath.Dir(file), "news-key.pem"), "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEILXb6ORTdKBmHXlZp1/xV/5E2eTq0ksOt5KcQA0AaBzG\n-----END PRIVATE KEY-----\n")
		gatetest.Write(t, file, block)
		if _, err := gate.LoadConfig(file); err != nil {
			t.Errorf("block %d of yaml: %v", i+1, err)
		}
	}
	known := keys(t)
	for _, m := range regexp.MustCompile("`((?:robots|tags|https|egress|pace|fleet|limits|admin|log|crawlers\\[\\]|overrides\\[\\])\\.[a-z_]+)[`:]").FindAllStringSubmatch(documentation(t), -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("the documentation names the key %s, which config.yaml does not have", m[1])
		}
	}
}

// TestKeysInMessages: the keys that the program's messages name exist. The parts name them as text.
func TestKeysInMessages(t *testing.T) {
	known, named := keys(t), 0
	key := regexp.MustCompile(`(?:^|[^A-Za-z/.%])((?:robots|tags|usage|https|egress|pace|fleet|limits|admin|log|crawlers\[\])\.[a-z_]+)`)
	for _, dir := range gatetest.Packages(t) {
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				for _, m := range key.FindAllStringSubmatch(literal.Value, -1) {
					if ext := filepath.Ext(m[1]); ext == ".txt" || ext == ".key" { // files
						continue
					}
					if named++; !slices.Contains(known, m[1]) {
						t.Errorf("%s: %s names the key %s, which config.yaml does not have", filepath.Join(dir, name), literal.Value, m[1])
					}
				}
				return true
			})
		}
	}
	if named < 50 {
		t.Errorf("only %d names found", named)
	}
}

// keys returns the keys in config.yaml, those of lists as in crawlers[].name.
func keys(t *testing.T) (all []string) {
	section := ""
	for line := range strings.Lines(gatetest.Read(t, "config.yaml")) {
		if m := regexp.MustCompile(`^([a-z_]+):(\s+\[\])?`).FindStringSubmatch(line); m != nil {
			section = m[1]
			if m[2] != "" {
				section += "[]"
			}
		} else if m := regexp.MustCompile(`^(?:  |#  - |#    |#  # )([a-z_]+):`).FindStringSubmatch(line); m != nil {
			all = append(all, section+"."+m[1])
		}
	}
	return all
}
