package main

import (
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

const module = "robotsgate"

// imports lists which of our packages each package imports. Every package must be in it.
var imports = map[string][]string{
	".": {"internal/cli"},

	// robots.txt.
	"policy/robotstxt": {"policy/canonical"},

	// Decisions and their parts, requests, and storage.
	"policy": {
		"internal/field", "internal/record", "policy/canonical", "policy/glob", "policy/robotstxt", "policy/snapshot",
		"policy/usage",
	},
	"policy/snapshot":  {"internal/coding", "internal/field", "internal/logtext", "policy/cache", "policy/canonical", "policy/robotstxt", "policy/usage"},
	"policy/canonical": {},
	"policy/cache":     {"policy/robotstag", "policy/usage"},
	"policy/robotstag": {},
	"policy/usage":     {"policy/robotstxt", "policy/robotstag", "htmlmeta"},
	"policy/glob":      {"policy/canonical"},
	"policy/pace":      {"internal/field", "policy/glob"},
	"htmlmeta":         {"internal/coding"},
	"proxy": {
		"htmlmeta", "internal/field", "internal/logtext", "internal/record", "policy", "policy/cache", "policy/canonical",
		"policy/glob", "policy/pace", "policy/robotstag", "policy/snapshot", "policy/usage", "proxy/internal/auth",
		"proxy/internal/body", "proxy/internal/client", "proxy/internal/header", "proxy/internal/origin",
		"proxy/internal/response", "proxy/internal/sign",
	},
	"proxy/internal/client":   {"internal/logtext"},
	"proxy/internal/auth":     {},
	"proxy/internal/body":     {"htmlmeta", "proxy/internal/client"},
	"proxy/internal/header":   {},
	"proxy/internal/response": {"htmlmeta", "policy", "policy/pace", "policy/robotstag", "policy/usage", "proxy/internal/body", "proxy/internal/client", "proxy/internal/header"},
	"proxy/internal/sign":     {"proxy/internal/header"},
	"proxy/internal/origin":   {"internal/field", "policy/glob", "proxy/internal/body"},
	"internal/store":          {"internal/logtext", "internal/wholefile", "policy/canonical", "policy/snapshot"},
	"internal/admin": {
		"internal/audit", "internal/field", "internal/fleet", "internal/logtext", "internal/record", "policy",
		"policy/canonical", "policy/pace", "policy/robotstxt", "policy/snapshot",
	},
	"internal/replay": {
		"internal/logtext", "internal/record", "policy", "policy/canonical", "policy/robotstxt", "policy/snapshot",
		"policy/usage",
	},
	"internal/fleet":   {"internal/field", "internal/logtext", "policy/snapshot", "policy/pace"},
	"internal/keyfile": {"internal/field", "policy/canonical"},
	"internal/history": {"internal/console", "internal/logtext", "policy/canonical", "policy/snapshot"},
	"internal/record":  {"internal/logtext", "policy/usage"}, // a leaf: plain data
	"internal/audit": {
		"internal/console", "internal/evidence", "internal/field", "internal/keyfile", "internal/logtext", "internal/record",
		"internal/replay", "policy", "policy/canonical", "policy/usage",
	},
	"internal/evidence": {"internal/keyfile", "internal/wholefile"},
	"internal/metrics": {
		"internal/audit", "internal/fleet", "internal/record", "policy", "policy/cache", "policy/snapshot", "policy/usage",
		"proxy",
	},
	"internal/field":            {},
	"internal/config":           {"internal/field", "policy/glob"},
	"internal/ca":               {"internal/field"},
	"internal/coding":           {},
	"internal/confine":          {},
	"internal/confine/attempts": {},
	"internal/demo":             {"proxy"},
	"internal/logtext":          {},
	"internal/wholefile":        {},
	"internal/gatetest":         {}, // it runs the program as a process
	"internal/bench":            {}, // its tests too
	"internal/e2e":              {}, // its tests too
	"internal/e2e/docs":         {}, // its tests too

	"internal/store/storetest":   {"policy/snapshot"}, // tests of a snapshot.Store
	"policy/internal/origintest": {},                  // answers of origins, for tests
	"proxy/internal/proxytest": {
		"internal/ca", "internal/gatetest", "internal/record", "internal/store/storetest", "policy", "policy/cache",
		"policy/glob", "policy/snapshot", "proxy", "proxy/internal/client",
	}, // a whole gate, for tests
	"proxy/internal/wire": {}, // its tests use proxytest

	// The commands, and what they share.
	"internal/cli": {
		"htmlmeta", "internal/audit", "internal/ca", "internal/clientenv", "internal/confine", "internal/console",
		"internal/demo", "internal/doctor", "internal/evidence", "internal/gate", "internal/history",
		"internal/keyfile", "internal/mcp", "internal/record", "internal/replay", "internal/requestlog",
		"policy", "policy/canonical", "policy/robotstag", "policy/usage", "proxy",
	},
	"internal/mcp":       {"internal/logtext", "policy", "policy/usage"},
	"internal/clientenv": {"internal/ca"},
	"internal/console":   {"internal/logtext", "policy/usage"},
	"internal/doctor": {"internal/ca", "internal/clientenv", "internal/confine/attempts", "internal/console",
		"internal/logtext", "internal/fleet", "internal/gate", "internal/keyfile"},
	"internal/requestlog": {"internal/console", "internal/logtext", "internal/record"},

	// The only package that connects the parts of the gate.
	"internal/gate": {
		"internal/admin", "internal/audit", "internal/ca", "internal/config", "internal/console", "internal/evidence",
		"internal/field", "internal/fleet", "internal/keyfile", "internal/logtext", "internal/metrics", "internal/record",
		"internal/requestlog", "internal/store", "internal/transparent", "internal/wholefile", "policy", "policy/cache",
		"policy/canonical", "policy/glob", "policy/pace", "policy/snapshot", "proxy",
	},
	"internal/transparent": {},
}

// libraries lists which packages may import a library, by the beginning of its path. Few packages
// use each library, so that it can be replaced.
var libraries = map[string][]string{
	"code.dny.dev/ssrf":                      {"proxy/internal/origin"},
	"filippo.io/torchwood":                   {"internal/evidence"},
	"github.com/KimMachineGun/automemlimit":  {"internal/gate"},
	"github.com/PuerkitoBio/goquery":         {"htmlmeta"},
	"github.com/alecthomas/kong":             {"internal/cli"},
	"github.com/andybalholm/brotli":          {"internal/coding", "policy/internal/origintest"},
	"github.com/dgraph-io/ristretto/v2":      {"policy/cache"},
	"github.com/dunglas/httpsfv":             {"proxy/internal/header", "proxy/internal/proxytest"},
	"github.com/elazarl/goproxy":             {"proxy"},
	"github.com/klauspost/compress":          {"internal/coding", "policy/internal/origintest"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/mcp"},
	"github.com/prometheus/client_golang":    {"internal/metrics"},
	"github.com/redis/rueidis":               {"internal/fleet"},
	"github.com/rogpeppe/go-internal":        {"internal/gatetest", "internal/history"},
	"github.com/gofrs/flock":                 {"internal/store"},
	"golang.org/x/crypto/bcrypt":             {"policy", "proxy/internal/auth", "proxy/internal/proxytest", "internal/cli"},
	"golang.org/x/mod/sumdb/note":            {"internal/evidence"},
	"golang.org/x/mod/sumdb/tlog":            {"internal/evidence"},
	"golang.org/x/net/bpf":                   {"internal/confine"},
	"golang.org/x/net/dns/dnsmessage":        {"internal/confine", "proxy/internal/proxytest"},
	"golang.org/x/net/html":                  {"htmlmeta"},
	"golang.org/x/net/http2":                 {"proxy/internal/proxytest"},
	"golang.org/x/net/http/httpguts":         {"htmlmeta", "proxy/internal/client", "proxy/internal/header", "proxy/internal/response"},
	"golang.org/x/net/netutil":               {"internal/gate"},
	"golang.org/x/net/idna":                  {"policy/canonical"},
	"golang.org/x/net/proxy":                 {"proxy/internal/origin"},
	"golang.org/x/sync/errgroup":             {"internal/fleet"},
	"golang.org/x/sync/singleflight":         {"internal/ca", "policy/snapshot"},
	"golang.org/x/sys/unix":                  {"internal/transparent", "internal/confine", "internal/confine/attempts", "proxy/internal/client"},
	"golang.org/x/term":                      {"internal/cli", "internal/console"},
	"golang.org/x/text":                      {"htmlmeta"},
	"gopkg.in/yaml.v3":                       {"internal/config"},
}

// TestImports compares the two tables with the source. Tests may import any package.
func TestImports(t *testing.T) {
	linux := build.Default
	linux.GOOS = "linux" // the tables are for Linux, wherever the test runs
	for _, dir := range gatetest.Packages(t) {
		pkg, err := linux.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(dir)
		ours, known := imports[name]
		if !known {
			t.Errorf("package %s is not in the table imports", name)
			continue
		}
		for _, own := range ours {
			if !slices.Contains(pkg.Imports, module+"/"+own) {
				t.Errorf("%s no longer imports %s: remove it from the table", name, own)
			}
		}
		for _, path := range pkg.Imports {
			switch own, is := strings.CutPrefix(path, module+"/"); {
			case is && !slices.Contains(ours, own):
				t.Errorf("%s imports %s, but may only import %s", name, own, list(ours))
			case !is && !standard(path):
				if users := usersOf(path); !slices.Contains(users, name) {
					t.Errorf("%s imports %s, which only %s may import", name, path, list(users))
				}
			}
		}
	}
}

// standard reports whether a package belongs to the standard library: the paths of all others
// begin with a host name.
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
