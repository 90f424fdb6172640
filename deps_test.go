package main

import (
	"errors"
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "robotsgate"

// imports is the architecture: which of our packages each of them may import.
// A package that is not in it has to be put in its place first.
var imports = map[string][]string{
	".": {"internal/cli"},

	// robots.txt.
	"policy/robotstxt":                 {"policy/robotstxt/internal/syntax", "policy/robotstxt/internal/match"},
	"policy/robotstxt/lint":            {"policy/robotstxt", "policy/robotstxt/internal/syntax", "policy/robotstxt/internal/match"},
	"policy/robotstxt/internal/syntax": {},
	"policy/robotstxt/internal/match":  {},

	// Decisions, and what they are made from.
	"policy":                 {"policy/robotstxt", "policy/robotstag", "internal/coding", "internal/lru", "policy/glob"},
	"policy/robotstag":       {},
	"policy/glob":            {},
	"htmlmeta":               {"internal/coding"},
	"proxy":                  {"policy", "policy/robotstag", "htmlmeta", "internal/escape", "policy/glob", "proxy/internal/memory", "proxy/internal/netconn", "proxy/internal/origin", "proxy/internal/sfv", "proxy/internal/auth"},
	"proxy/internal/auth":    {},
	"proxy/internal/sfv":     {},
	"proxy/internal/memory":  {},
	"proxy/internal/netconn": {},
	"proxy/internal/origin":  {"policy", "policy/glob", "proxy/internal/memory", "proxy/internal/netconn"},
	"internal/store":         {"policy", "internal/lru"},
	"internal/lru":           {},
	"internal/admin":         {"policy", "internal/overview", "internal/escape"},
	"internal/replay":        {"policy", "policy/robotstxt", "internal/audit", "internal/escape", "internal/store"},
	"internal/history":       {"policy/robotstxt", "internal/escape"},
	"internal/audit":         {"internal/escape", "policy", "proxy"},
	"internal/metrics":       {"policy", "proxy"},
	"internal/overview":      {"policy", "proxy"},
	"internal/config":        {"policy/glob"},
	"internal/ca":            {},
	"internal/coding":        {},
	"internal/escape":        {},
	"internal/gatetest":      {}, // it knows the binary by what it does
	"internal/bench":         {}, // so does it
	"internal/e2e":           {}, // and it

	"internal/store/storetest": {"policy"}, // tests of a policy.Store

	// The only one that wires.
	"internal/cli": {"policy", "policy/robotstxt", "policy/robotstxt/lint", "policy/robotstag", "htmlmeta", "proxy", "internal/store",
		"internal/admin", "internal/audit", "internal/history", "internal/replay", "internal/metrics", "internal/overview", "internal/config", "internal/ca", "internal/escape", "policy/glob"},
}

// libraries says which packages may import what is not ours, by the beginning
// of its path: each library stays behind one door, so that it can be replaced.
var libraries = map[string][]string{
	"code.dny.dev/ssrf":                     {"proxy/internal/origin"},
	"github.com/KimMachineGun/automemlimit": {"internal/cli"},
	"github.com/PuerkitoBio/goquery":        {"htmlmeta"},
	"github.com/alecthomas/kong":            {"internal/cli"},
	"github.com/andybalholm/brotli":         {"internal/coding"},
	"github.com/dunglas/httpsfv":            {"proxy"},
	"github.com/elazarl/goproxy":            {"proxy"},
	"github.com/klauspost/compress":         {"internal/coding"},
	"github.com/prometheus/client_golang":   {"internal/metrics"},
	"github.com/rogpeppe/go-internal":       {"internal/gatetest", "internal/history"},
	"go.etcd.io/bbolt":                      {"internal/store"},
	"golang.org/x/crypto/bcrypt":            {"proxy/internal/auth"},
	"golang.org/x/net/html":                 {"htmlmeta"},
	"golang.org/x/net/http/httpguts":        {"proxy", "proxy/internal/origin"},
	"golang.org/x/net/netutil":              {"internal/cli"},
	"golang.org/x/net/idna":                 {"policy/glob"},
	"golang.org/x/net/proxy":                {"proxy/internal/origin"},
	"golang.org/x/sync/singleflight":        {"internal/ca"},
	"golang.org/x/sys/unix":                 {"internal/cli", "proxy"},
	"golang.org/x/term":                     {"internal/cli"},
	"golang.org/x/text":                     {"htmlmeta"},
	"gopkg.in/yaml.v3":                      {"internal/config"},
}

// TestImports holds the two tables against the source. Tests may import what
// they need.
func TestImports(t *testing.T) {
	for _, dir := range packages(t) {
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(dir)
		ours, known := imports[name]
		if !known {
			t.Errorf("package %s is not in the table: where does it belong?", name)
			continue
		}
		for _, path := range pkg.Imports {
			switch own, is := strings.CutPrefix(path, module+"/"); {
			case is && !slices.Contains(ours, own):
				t.Errorf("%s imports %s: it may import %s", name, own, list(ours))
			case !is && !standard(path):
				if users := usersOf(path); !slices.Contains(users, name) {
					t.Errorf("%s imports %s, which is for %s", name, path, list(users))
				}
			}
		}
	}
}

// packages returns the folders with Go files, tools' module and testdata aside.
func packages(t *testing.T) []string {
	var dirs []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != "." && (name == "testdata" || name == "tools" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		_, err = build.ImportDir(path, 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			return nil
		}
		dirs = append(dirs, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// standard reports whether a package is of the standard library: all others
// begin with the name of a host.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func usersOf(path string) []string {
	for library, users := range libraries {
		if path == library || strings.HasPrefix(path, library+"/") {
			return users
		}
	}
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
