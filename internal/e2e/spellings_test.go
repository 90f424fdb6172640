package e2e

import (
	"bufio"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestSpellings requests disallowed pages from real servers in every spelling of
// testdata/spellings.txt and in random spellings. If a server serves a spelling directly, the
// gate must refuse it. Without ROBOTSGATE_LONG=1, and under the race detector, the only server is nginx.
func TestSpellings(t *testing.T) {
	t.Parallel()
	certificate := filepath.Join(t.TempDir(), "origin.pem")
	origins, missing := startServers(t, gatetest.Size(webServers[:1], webServers), certificate)
	if len(missing) > 0 {
		t.Run("missing", func(t *testing.T) {
			t.Skipf("these Debian packages are not installed: %s", strings.Join(missing, ", "))
		})
	}
	gate := startGate(t, "ca_file: "+certificate)
	corpus := readSpellings(t, "testdata/spellings.txt")
	seed := gatetest.Seed(t)
	t.Run("servers", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(origins)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				spellings := slices.Clone(corpus)
				s := speller{rand.New(rand.NewPCG(seed, uint64(i)))}
				for range randomSpellings {
					spellings = append(spellings, s.spelling(), s.mutation(), s.query())
				}
				testSpellings(t, gate, origins[name], spellings)
			})
		}
	})
}

// randomSpellings is the number of random spellings of each kind per origin.
const randomSpellings = 300

// leastServed is the number of spellings for which an origin must serve a disallowed page
// directly: half of what the strictest server serves.
const leastServed = 100

// testSpellings requests the spellings from one origin, first directly and then through the gate.
func testSpellings(t *testing.T, gate string, o origin, spellings []string) {
	direct := &rawClient{address: o.address, tls: o.tls}
	defer direct.close()
	forms := throughGate(t, gate, o)
	served := 0
	for _, s := range spellings {
		target := strings.ReplaceAll(s, "{host}", o.address)
		_, body, _ := direct.get(target, o.address) // an error is like a response without the page
		if !disallowed(body) || dropsFirst.MatchString(s) || strings.HasPrefix(body, "disallowed: /docs/plan.secret") && endsEarly.MatchString(s) {
			continue
		}
		served++
		for name, get := range forms {
			if through, _ := get(target); disallowed(through) {
				t.Errorf("%s: the gate allows %q: %s", name, s, strings.TrimSpace(body))
			}
		}
	}
	t.Logf("served %d of %d", served, len(spellings))
	if served < leastServed {
		t.Errorf("the server serves disallowed pages for %d spellings, want at least %d", served, leastServed)
	}
	for name, get := range forms {
		if body, err := get("/public/x"); !strings.HasPrefix(body, "allowed: /public/x") {
			t.Errorf("%s: the allowed page: got %q, %v", name, body, err)
		}
	}
}

// endsEarly matches spellings with what ends a path to the next server. Under a rule that ends with $, as that of
// plan.secret, SECURITY.md names them as not covered.
var endsEarly = regexp.MustCompile(`(?i)%(25)*(0[0-9a-f]|1[0-9a-f]|20|23|3f)`)

// dropsFirst matches parameters with an encoded separator or question mark, which Tomcat drops first. They are not covered either.
var dropsFirst = regexp.MustCompile(`(?i)(;|%(25)*3b)[^/]*(%(25)*(2f|5c|3f)|\\)`)

// throughGate returns the ways to request a target of an origin through the gate.
func throughGate(t *testing.T, gate string, o origin) map[string]func(target string) (string, error) {
	scheme := "http"
	if o.tls {
		scheme = "https"
	}
	absolute := &rawClient{address: gate}
	tunnel := &rawClient{address: gate, connect: o.address, tls: o.tls}
	multiplexed := &http2Client{tunnel: rawClient{address: gate, connect: o.address}}
	t.Cleanup(func() { absolute.close(); tunnel.close(); multiplexed.close() })
	forms := map[string]func(string) (string, error){
		"absolute form": func(target string) (string, error) {
			if strings.HasPrefix(target, "/") {
				target = scheme + "://" + o.address + target
			}
			_, body, err := absolute.get(target, o.address)
			return body, err
		},
		"CONNECT": func(target string) (string, error) {
			_, body, err := tunnel.get(target, o.address)
			return body, err
		},
	}
	if o.tls {
		forms["HTTP/2"] = multiplexed.get
	}
	return forms
}

func disallowed(body string) bool { return strings.HasPrefix(body, "disallowed: ") }

// readSpellings reads one request target per line, up to a tab and a comment. {0A} stands for a
// byte that a line cannot contain, {host} for the origin's host and port.
func readSpellings(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var spellings []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "\t")
		if text == "" || strings.HasPrefix(text, "# ") {
			continue
		}
		spellings = append(spellings, rawByte.ReplaceAllStringFunc(text, func(s string) string {
			n, _ := strconv.ParseUint(s[1:3], 16, 8)
			return string([]byte{byte(n)})
		}))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(spellings) == 0 {
		t.Fatalf("%s: no spellings", file)
	}
	return spellings
}

var rawByte = regexp.MustCompile(`\{[0-9A-F]{2}\}`)
