package docs

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
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

// TestReadmeClients compares the lines of docs/clients.md for each client with those of the
// gate's page, which TestRealClients runs.
func TestReadmeClients(t *testing.T) {
	gate := gatetest.ServeSite(t, t.TempDir(), t.TempDir(), "admin: {listen: \"\"}\n").Proxy
	page, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate+"/", http.StatusOK)
	address, port, _ := strings.Cut(strings.TrimPrefix(gate, "http://"), ":")
	usual := strings.NewReplacer(address+":"+port, "127.0.0.1:9309", "Port="+port, "Port=9309")
	var want []string
	for client, lines := range gatetest.PageLines(page) {
		if strings.Contains(client, "with a") { // programs, and windows
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
