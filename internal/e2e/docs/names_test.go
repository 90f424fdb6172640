package docs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
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
	"robotsgate/internal/demo"
	"robotsgate/internal/gatetest"
	"robotsgate/policy"
)

// section returns the text under a level-two heading of a page.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(gatetest.Read(t, page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// cells returns the code spans in a column of a text's tables.
func cells(text string, column int) (all []string) {
	for line := range strings.Lines(text) {
		if row := strings.Split(line, " | "); strings.HasPrefix(line, "|") && column < len(row) {
			all = append(all, gatetest.Matches("`([^`]+)`", row[column])...)
		}
	}
	return all
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
// documentation names with those of a gate in front of the sample site's files.
func TestReadmeServing(t *testing.T) {
	dir := t.TempDir()
	writeSite(t, filepath.Join(dir, "site"))
	gate := gatetest.ServeSite(t, filepath.Join(dir, "site"), dir, "admin: {listen: \"127.0.0.1:0\"}\nlog: {audit: audit.jsonl}\npace: {budgets: [{hosts: [\"*\"], requests: 9, window: 1h}]}\n")
	through, direct := gatetest.Client(t, gate.Proxy), gatetest.Client(t, "")

	sent := http.Header{}
	for path, status := range map[string]int{"/offers.html": http.StatusOK, "/private/plans.html": http.StatusForbidden} {
		_, header := gatetest.Request(t, through, http.MethodGet, "http://shop.example"+path, status)
		maps.Copy(sent, header)
	}
	headers := slices.DeleteFunc(slices.Collect(maps.Keys(sent)), func(name string) bool { return !strings.HasPrefix(name, "Robots-Gate-") })
	same(t, "header", gatetest.Matches("`(Robots-Gate-[A-Z][a-z]+)`", documentation(t)), headers)
	for _, name := range []string{"Proxy-Status", "Content-Length", "Cache-Control"} {
		if sent.Get(name) == "" {
			t.Errorf("the documentation says that a refusal has %s", name)
		}
	}

	admin := gatetest.Read(t, "docs/admin.md")
	metrics, _ := gatetest.Request(t, direct, http.MethodGet, gate.Admin+"/metrics", http.StatusOK)
	more := gatetest.Matches(`"(robotsgate_[a-z_]+)"`, source(t, "internal/metrics/watch.go")) // this gate is in no fleet
	same(t, "metric", gatetest.Matches("`(robotsgate_[a-z_]+)`", admin), append(gatetest.Matches("# HELP (robotsgate_[a-z_]+) ", metrics), more...))
	value := strings.NewReplacer("?url=", "?url=http://shop.example/", "?origin=", "?origin=http://shop.example", "agent=", "agent=ExampleBot")
	for _, name := range gatetest.Matches("(?m)^\\| `((?:POST )?/[^`]*)` \\|", admin) {
		method, path, ok := strings.Cut(name, " ")
		if !ok {
			method, path = http.MethodGet, name
		}
		gatetest.Request(t, direct, method, gate.Admin+value.Replace(path), http.StatusOK)
	}
	for _, path := range gatetest.Matches("`http://127\\.0\\.0\\.1:9309(/[^`]*)`", gatetest.Read(t, "docs/clients.md")) {
		gatetest.Request(t, direct, http.MethodGet, gate.Proxy+path, http.StatusOK)
	}

	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue // a temporary file of wholefile
		}
		if e.IsDir() {
			name += "/"
		}
		files = append(files, name)
	}
	same(t, "file in data_dir", gatetest.Matches("(?m)^\\| `([^`]+)` \\|", section(t, "docs/deploy.md", "Files")), files)
}

// writeSite writes files of the sample site of robotsgate demo.
func writeSite(t *testing.T, dir string) {
	t.Helper()
	site := demo.New()
	for _, name := range []string{"robots.txt", "offers.html"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := site.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		gatetest.Write(t, filepath.Join(dir, name), string(body))
		var headers strings.Builder
		for _, name := range []string{"Content-Type", "X-Robots-Tag", "Content-Usage"} {
			if value := resp.Header.Get(name); value != "" {
				fmt.Fprintf(&headers, "%s: %s\n", name, value)
			}
		}
		gatetest.Write(t, filepath.Join(dir, name+".headers"), headers.String())
	}
}

// TestReadmeMembers compares the members, reasons and errors that are named
// with the code's, and the variables and options with the program's.
func TestReadmeMembers(t *testing.T) {
	same(t, "member of audit records", cells(section(t, "docs/audit.md", "Records"), 0), members(reflect.TypeFor[audit.Entry]()))

	refused := section(t, "docs/annotations.md", "What a refused crawler receives")
	for _, name := range slices.Concat(members(reflect.TypeFor[policy.Evidence]()), members(reflect.TypeFor[policy.RobotsEvidence]())) {
		if !strings.Contains(refused, `"`+name+`": `) && !strings.Contains(refused, "`"+name+"`") {
			t.Errorf("docs/annotations.md does not name the member %q of refusals", name)
		}
	}
	same(t, "reason", gatetest.Matches("(?m)^\\| `([a-z-]+)` \\|", section(t, "docs/annotations.md", "What a response says")),
		gatetest.Matches(`Reason += "([a-z-]+)"`, source(t, "policy/*.go")))

	gate := source(t, "proxy/*.go") + source(t, "proxy/internal/*/*.go")
	errors := slices.DeleteFunc(cells(section(t, "docs/annotations.md", "Status codes of the gate"), 2), func(name string) bool { return name == "error" || name == "Proxy-Status" })
	if len(errors) == 0 {
		t.Error("docs/annotations.md names no error")
	}
	for _, name := range errors {
		if !strings.Contains(gate, `"`+name+`"`) {
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
	for _, row := range gatetest.Matches("(?m)^\\| ((?:`[A-Za-z_0-9]+` ?)+)\\|", gatetest.Read(t, "docs/clients.md")) {
		said = append(said, gatetest.Matches("`([^`]+)`", row)...)
	}
	same(t, "variable", said, append(gatetest.Matches(`(?m)^export (\w+)=`, string(out)), "ROBOTSGATE_ADMIN", "ROBOTSGATE_SPKI"))

	parser, err := kong.New(&cli.Commands{})
	if err != nil {
		t.Fatal(err)
	}
	commands := gatetest.Read(t, "docs/commands.md")
	for _, command := range parser.Model.Leaves(false) {
		name := strings.TrimPrefix(command.FullPath(), parser.Model.Name+" ")
		var options []string
		for _, f := range command.Flags {
			if f.Name != "config" {
				options = append(options, "--"+f.Name)
			}
		}
		if !anchors(commands)[strings.ReplaceAll(name, " ", "-")] {
			t.Errorf("docs/commands.md has no heading for %s", name)
		}
		lines := strings.Join(gatetest.Matches("(?m)^(robotsgate "+name+"\\b.*(?:\n +.*)*)", commands), " ")
		same(t, "option of "+name, gatetest.Matches(`(--[a-z]+(?:-[a-z]+)*)`, lines), options)
	}
}

// source returns the text of the files that match a pattern.
func source(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString(gatetest.Read(t, file))
	}
	return text.String()
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

// TestReadmeClients compares the lines of docs/clients.md for each client with those of the
// gate's page, which TestOwnPageLines and TestBrowsers run.
func TestReadmeClients(t *testing.T) {
	gate := gatetest.ServeSite(t, t.TempDir(), t.TempDir(), "admin: {listen: \"\"}\n").Proxy
	page, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate+"/", http.StatusOK)
	address, port, _ := strings.Cut(strings.TrimPrefix(gate, "http://"), ":")
	usual := strings.NewReplacer(address+":"+port, "127.0.0.1:9309", "Port="+port, "Port=9309")
	var want []string
	for client, lines := range gatetest.PageLines(page) {
		if strings.Contains(client, "with a") { // programs, which TestBrowsers runs, and windows
			continue
		}
		for _, line := range lines {
			want = append(want, usual.Replace(line))
		}
	}
	text := section(t, "docs/clients.md", "Single clients")
	var got []string
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]+\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		got = append(got, strings.Split(strings.TrimSuffix(m[1], "\n"), "\n")...)
	}
	want = slices.DeleteFunc(want, func(line string) bool { return strings.HasPrefix(line, `eval "$(`) }) // for all clients at once
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/clients.md has\n%s\nthe page has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
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
		case !strings.HasSuffix(path, "_test.go") && filepath.Dir(path) != filepath.FromSlash("internal/gatetest"):
			return nil
		}
		text, err := os.ReadFile(path)
		variables = append(variables, gatetest.Matches(`Getenv\("(ROBOTSGATE_[A-Z_]+)"\)`, string(text))...)
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
	same(t, "variable", gatetest.Matches("(?m)^\\| `(ROBOTSGATE_[A-Z_]+)=", string(text)), slices.Compact(variables))
}

// TestReadmeLayout looks for every path of the layout, and for every package in it.
func TestReadmeLayout(t *testing.T) {
	paths := gatetest.Matches(`(?m)^([\w./]+) {2,}\S`, section(t, "docs/design.md", "Layout"))
	if len(paths) == 0 {
		t.Fatal("docs/design.md has no layout")
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.FromSlash(path)); err != nil {
			t.Errorf("docs/design.md's layout: %v", err)
		}
	}
	for _, dir := range gatetest.Packages(t) {
		if name := filepath.ToSlash(dir); name != "." && !slices.Contains(paths, name+"/") {
			t.Errorf("docs/design.md's layout does not name the package %s", name)
		}
	}
}
