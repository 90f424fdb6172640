package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"robotsgate/internal/audit"
	"robotsgate/internal/cli"
	"robotsgate/internal/gatetest"
	"robotsgate/policy"
)

// section returns the text under a level-two heading of a page.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(read(t, page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// cells returns the words marked as code in a column of a text's tables.
func cells(text string, column int) (all []string) {
	for line := range strings.Lines(text) {
		if row := strings.Split(line, " | "); strings.HasPrefix(line, "|") && column < len(row) {
			all = append(all, found("`([^`]+)`", row[column])...)
		}
	}
	return all
}

// found returns what a pattern's group matches, sorted, each once.
func found(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// same compares the names in the documentation with the names in use.
func same(t *testing.T, what string, said, is []string) {
	t.Helper()
	for _, name := range said {
		if !slices.Contains(is, name) {
			t.Errorf("the documentation names the %s %q, which does not exist", what, name)
		}
	}
	for _, name := range is {
		if !slices.Contains(said, name) {
			t.Errorf("the documentation does not name the %s %q", what, name)
		}
	}
}

// TestReadmeServing compares the headers, metrics, paths and files that the
// documentation names with those of a gate that serves README.md's example.
func TestReadmeServing(t *testing.T) {
	dir := t.TempDir()
	writeSite(t, dir)
	origin, err := gatetest.StartOrigin(filepath.Join(dir, "site"), filepath.Join(dir, "origin.log"), filepath.Join(dir, "origin-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	defer origin.Close()
	file := filepath.Join(dir, "gate.yaml")
	write(t, file, fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"127.0.0.1:0\"}\negress: {proxy: \"http://%s\"}\nlog: {audit: audit.jsonl}\n", origin.HTTP))
	gate, err := gatetest.StartGate(exec.Command("robotsgate", "serve", "-c", file), t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	}()
	proxy, err := url.Parse(gate.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	through := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	defer through.CloseIdleConnections()
	direct := &http.Client{Transport: &http.Transport{}}
	defer direct.CloseIdleConnections()

	sent := http.Header{}
	for path, status := range map[string]int{"/offers.html": http.StatusOK, "/private/plans.html": http.StatusForbidden} {
		_, header := get(t, through, http.MethodGet, "http://shop.example"+path, status)
		maps.Copy(sent, header)
	}
	headers := slices.DeleteFunc(slices.Collect(maps.Keys(sent)), func(name string) bool { return !strings.HasPrefix(name, "Robots-Gate-") })
	same(t, "header", found("`(Robots-Gate-[A-Z][a-z]+)`", documentation(t)), headers)
	for _, name := range []string{"Proxy-Status", "Content-Length", "Cache-Control"} {
		if sent.Get(name) == "" {
			t.Errorf("the documentation says that a refusal has %s", name)
		}
	}

	admin := read(t, "docs/admin.md")
	metrics, _ := get(t, direct, http.MethodGet, gate.Admin+"/metrics", http.StatusOK)
	same(t, "metric", found("`(robotsgate_[a-z_]+)`", admin), found("# HELP (robotsgate_[a-z_]+) ", metrics))
	value := strings.NewReplacer("?url=", "?url=http://shop.example/", "?origin=", "?origin=http://shop.example", "agent=", "agent=ExampleBot")
	for _, name := range found("(?m)^\\| `((?:POST )?/[^`]*)` \\|", admin) {
		method, path, ok := strings.Cut(name, " ")
		if !ok {
			method, path = http.MethodGet, name
		}
		get(t, direct, method, gate.Admin+value.Replace(path), http.StatusOK)
	}
	for _, path := range found("`http://127\\.0\\.0\\.1:9309(/[^`]*)`", read(t, "docs/clients.md")) {
		get(t, direct, http.MethodGet, gate.Proxy+path, http.StatusOK)
	}

	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		files = append(files, name)
	}
	same(t, "file in data_dir", found("(?m)^\\| `([^`]+)` \\|", section(t, "docs/deploy.md", "Files")), files)
}

func get(t *testing.T, client *http.Client, method, url string, status int) (body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Errorf("%s %s: got %s, want %d", method, url, resp.Status, status)
	}
	return string(data), resp.Header
}

// TestReadmeMembers compares the members, reasons and errors that are named
// with the code's, and the variables and options with the program's.
func TestReadmeMembers(t *testing.T) {
	same(t, "member of audit records", cells(read(t, "docs/audit.md"), 0), members(reflect.TypeFor[audit.Record]()))

	refused := section(t, "docs/annotations.md", "What a refused crawler receives")
	for _, name := range slices.Concat(members(reflect.TypeFor[policy.Evidence]()), members(reflect.TypeFor[policy.RobotsEvidence]())) {
		if !strings.Contains(refused, `"`+name+`": `) && !strings.Contains(refused, "`"+name+"`") {
			t.Errorf("docs/annotations.md does not name the member %q of refusals", name)
		}
	}
	same(t, "reason", found("(?m)^\\| `([a-z-]+)` \\|", section(t, "docs/annotations.md", "What a response says")),
		found(`Reason += "([a-z-]+)"`, read(t, "policy/policy.go")))

	sources, err := filepath.Glob("proxy/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var gate strings.Builder
	for _, file := range sources {
		gate.WriteString(read(t, file))
	}
	errors := slices.DeleteFunc(cells(section(t, "docs/annotations.md", "Status codes of the gate"), 2), func(name string) bool { return name == "error" || name == "Proxy-Status" })
	if len(errors) == 0 {
		t.Error("docs/annotations.md names no error")
	}
	for _, name := range errors {
		if !strings.Contains(gate.String(), `"`+name+`"`) {
			t.Errorf("docs/annotations.md names the error %q, which the gate does not send", name)
		}
	}

	cmd := exec.CommandContext(t.Context(), "robotsgate", "env")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, row := range found("(?m)^\\| ((?:`[A-Za-z_0-9]+` ?)+)\\|", read(t, "docs/clients.md")) {
		said = append(said, found("`([^`]+)`", row)...)
	}
	same(t, "variable", said, append(found(`(?m)^export (\w+)=`, string(out)), "ROBOTSGATE_ADMIN"))

	parser, err := kong.New(&cli.Commands{})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		var options []string
		for _, f := range command.Flags {
			if f.Name != "config" {
				options = append(options, "--"+f.Name)
			}
		}
		rows := strings.Join(found("(?m)^\\| `(robotsgate "+command.Name+"\\b[^`]*)`", read(t, "docs/commands.md")), " ")
		same(t, "option of "+command.Name, found(`(--[a-z]+(?:-[a-z]+)*)`, rows), options)
	}
}

// members returns the names that a struct's fields have in JSON.
func members(s reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(s) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// TestContributingVariables compares the environment variables that CONTRIBUTING.md
// names with those that the tests read.
func TestContributingVariables(t *testing.T) {
	var variables []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		variables = append(variables, found(`Getenv\("(ROBOTSGATE_[A-Z_]+)"\)`, string(text))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(variables)
	same(t, "variable", found("(?m)^\\| `(ROBOTSGATE_[A-Z_]+)=", string(text)), slices.Compact(variables))
}

// TestReadmeLayout looks for every path of the layout, and for every package in it.
func TestReadmeLayout(t *testing.T) {
	paths := found(`(?m)^([\w./]+) {2,}\S`, section(t, "docs/design.md", "Layout"))
	if len(paths) == 0 {
		t.Fatal("docs/design.md has no layout")
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.FromSlash(path)); err != nil {
			t.Errorf("docs/design.md's layout: %v", err)
		}
	}
	for _, dir := range packages(t) {
		if name := filepath.ToSlash(dir); name != "." && !slices.Contains(paths, name+"/") {
			t.Errorf("docs/design.md's layout does not name the package %s", name)
		}
	}
}
