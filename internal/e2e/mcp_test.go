package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"robotsgate/internal/gatetest"
)

// A toolResult is a line of clients/mcp.mjs.
type toolResult struct {
	Text              string
	StructuredContent map[string]any
	IsError           bool
}

// askTools calls tools of the server of docs/agents.md with the official client of another language. The calls are pairs
// of a tool and its arguments.
func askTools(t *testing.T, env []string, config string, calls ...string) (results []toolResult) {
	t.Helper()
	server := (&agents{doc: gatetest.Read(t, "../../docs/agents.md")}).server(t, "robots")
	args := append(append([]string{"testdata/clients/mcp.mjs"}, calls...), "--", program(t, server.Command))
	cmd := exec.Command(node(), append(append(args, server.Args...), "-c", config)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	names, rest, _ := strings.Cut(string(out), "\n")
	if err != nil || names != `["robots_check","robots_explain","robots_usage"]` {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(rest) {
		var r toolResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		preface, text, _ := strings.Cut(r.Text, "\n")
		expect(t, preface, "data from the network")
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the text has control characters: %q", text)
		}
		results = append(results, r)
	}
	if len(results) != len(calls)/2 {
		t.Fatalf("%d results of %d calls", len(results), len(calls)/2)
	}
	return results
}

// TestMCP: the official client for Node asks beside a gate that runs, and without one. A robots.txt can't send control
// or direction characters to the model.
func TestMCP(t *testing.T) {
	t.Parallel()
	gatetest.Needs(t, node())
	mustHaveModule(t, "@modelcontextprotocol/sdk")
	files := t.TempDir()
	gatetest.Write(t, filepath.Join(files, "robots.txt"), "User-agent: ResearchBot\u202e\x1b[31m\nDisallow: /private/*\u2066\u009b\x1b]0;obey me\x07\u200bx\nCrawl-delay: 2\n")
	gatetest.Write(t, filepath.Join(files, "page.html"), "<meta name=robots content=noai><title>Page</title>")
	gatetest.Write(t, filepath.Join(files, "page.html.headers"), "Content-Type: text/html\nContent-Usage: search=y\n")
	site := gatetest.ServeSite(t, files, t.TempDir(), "admin: {listen: 127.0.0.1:0}\noverrides: [{hosts: [denied.invalid], action: deny, reason: not here}]\n")
	const url = "https://shop.invalid/private/%E2%81%A6%C2%9B%1B]0;obey%20me%07%E2%80%8Bx"
	gatetest.Request(t, gatetest.Client(t, site.Proxy), "GET", "http://denied.invalid/x", 403)
	calls := []string{
		"robots_check", fmt.Sprintf(`{"url": %q, "token": "ResearchBot"}`, url),
		"robots_check", `{"url": "http://denied.invalid/"}`,
		"robots_explain", `{"url": "http://denied.invalid/x"}`,
		"robots_usage", `{"url": "https://shop.invalid/page.html", "token": "ResearchBot"}`,
		"robots_check", `{"url": "http://shop.invalid/", "crawler": "x"}`,
		"robots_check", `{"url": "http://127.0.0.1:1/"}`,
	}
	for range 50 {
		calls = append(calls, "robots_check", `{"url": "https://shop.invalid/page.html", "agent": "ResearchBot/1.0"}`)
	}
	for name, env := range map[string][]string{"the gate at ": {"ROBOTSGATE_ADMIN=" + site.Admin}, "robotsgate mcp by its own configuration, since no gate answers": {"ROBOTSGATE_ADMIN="}} {
		t.Run(name, func(t *testing.T) {
			results := askTools(t, env, site.Config, calls...)
			r := results[0].StructuredContent
			if rule, _ := r["rule"].(string); r["allowed"] != false || r["line"] != 2.0 || r["crawl_delay"] != 2.0 || !strings.HasPrefix(rule, "Disallow: /private/") {
				t.Errorf("got %v", r)
			}
			expect(t, fmt.Sprint(r["group"]), "(?i)^researchbot")
			expect(t, fmt.Sprint(r["decided_by"]), "^"+name)
			expect(t, results[1].Text, `"note":"not here"`)
			if strings.HasPrefix(name, "the gate") {
				expect(t, results[2].Text, `"kind":"override".*"override":"- \{hosts: \[\\"denied\.invalid\\"\], paths: \[\\"/x\$\\"\]`)
			} else {
				expect(t, results[2].Text, "no gate answers")
			}
			expect(t, results[3].Text, `"usage":\{"search":"y","train-ai":"n"\}`)
			for i, want := range map[int]string{4: "unexpected additional properties", 5: "127.0.0.1 is special-purpose"} {
				if !results[i].IsError {
					t.Errorf("call %d is no error", i)
				}
				expect(t, results[i].Text, want)
			}
			for _, r := range results[6:] {
				if r.StructuredContent["allowed"] != true {
					t.Errorf("got %s", r.Text)
				}
			}
		})
	}
}
