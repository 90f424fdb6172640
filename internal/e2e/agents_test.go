package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// An mcpServer is a process that speaks MCP over standard input and output: a JSON-RPC message a line.
type mcpServer struct {
	in     io.Writer
	out    *bufio.Reader
	lastID int
}

// startMCP starts a server in a folder, with the few variables that programs give to servers.
func startMCP(t *testing.T, dir, command string, args ...string) *mcpServer {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
	cmd.Path = filepath.Join(dir, "bin", command)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // ends the server
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	s := &mcpServer{in: in, out: bufio.NewReader(out)}
	s.call(t, "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "test", "version": "1"}})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// call returns the result of a method. Every line of the server's output must be JSON.
func (s *mcpServer) call(t *testing.T, method string, params any) json.RawMessage {
	t.Helper()
	s.lastID++
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.lastID, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "%s\n", request); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatalf("the output has a line that is not JSON: %q", line)
		}
		switch {
		case answer.ID != s.lastID: // a notification
		case answer.Error != nil:
			t.Fatalf("%s: %s", method, answer.Error)
		default:
			return answer.Result
		}
	}
}

// page navigates to a URL and returns what the model sees of the page.
func (s *mcpServer) page(t *testing.T, url string) string {
	t.Helper()
	s.call(t, "tools/call", map[string]any{"name": "browser_navigate", "arguments": map[string]string{"url": url}})
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(s.call(t, "tools/call", map[string]any{"name": "browser_snapshot", "arguments": map[string]any{}}), &result); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, c := range result.Content {
		text.WriteString(c.Text)
	}
	return text.String()
}

// TestAgents runs Playwright's MCP server as docs/agents.md says: with a gate of its own, and with a
// login at one that runs already.
func TestAgents(t *testing.T) {
	gatetest.Long(t)
	mustHave(t, "certutil", "libnss3-tools")
	mustHave(t, "chromium", "chromium")
	mustHaveModule(t, "@playwright/mcp")
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	files, dir := t.TempDir(), t.TempDir()
	gatetest.Write(t, filepath.Join(files, "robots.txt"), "User-agent: ResearchBot\nDisallow: /private/\n")
	gatetest.Write(t, filepath.Join(files, "page.html"), "<title>Page</title><h1>What everybody may read</h1>")
	gatetest.Write(t, filepath.Join(files, "page.html.headers"), "Content-Type: text/html\n")
	site := gatetest.ServeSite(t, files, t.TempDir(), fmt.Sprintf(
		"admin: {listen: \"\"}\nunknown_clients: refuse\ncrawlers: [{name: agent, product_tokens: [ResearchBot], login: {user: agent, password_bcrypt: %q}}]\n", hash))
	doc := gatetest.Read(t, "../../docs/agents.md")
	for file, script := range map[string]string{
		"robotsgate": `command=$1; shift; exec ` + program(t, "robotsgate") + ` "$command" -c ` + site.Config + ` "$@"`,
		// The package without a browser uses Debian's, and a sandbox that root cannot have is left out.
		"npx": `[ "$1" = @playwright/mcp@0.0.83 ] || exit 1; shift
exec ` + abs(t, node()) + " " + abs(t, "testdata/clients/node_modules/@playwright/mcp/cli.js") + ` --executable-path /usr/bin/chromium --no-sandbox "$@"`,
	} {
		gatetest.Write(t, filepath.Join(dir, "bin", file), "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(dir, "bin", file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	trust := exec.Command("sh", "-ec", docBlock(t, doc, "sh", "certutil"))
	trust.Dir, trust.Env = dir, []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
	if out, err := trust.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var hosts struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		}
	}
	if err := json.Unmarshal([]byte(docBlock(t, doc, "json", `"robotsgate"`)), &hosts); err != nil {
		t.Fatal(err)
	}
	browser := hosts.MCPServers["browser"]
	replace := strings.NewReplacer("127.0.0.1:9309", strings.TrimPrefix(site.Proxy, "http://"), "USER", "agent", "PASSWORD", "correct-horse")
	gatetest.Write(t, filepath.Join(dir, "login.json"), replace.Replace(docBlock(t, doc, "json", `"launchOptions"`)))
	for name, args := range map[string][]string{
		"a gate of its own": append([]string{browser.Command}, browser.Args...),
		"a login":           {"npx", "@playwright/mcp@0.0.83", "--headless", "--isolated", "--config", "login.json"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startMCP(t, dir, args[0], args[1:]...)
			if got := s.page(t, "https://shop.invalid/page.html"); !strings.Contains(got, "What everybody may read") {
				t.Errorf("the model sees\n%s", got)
			}
			got := regexp.MustCompile(` \[ref=\w+\]`).ReplaceAllString(s.page(t, "https://shop.invalid/private/"), "")
			for line := range strings.Lines(docBlock(t, doc, "text", "403 Refused")) {
				if line = strings.ReplaceAll(line, "shop.example", "shop.invalid"); !strings.Contains(got, line) {
					t.Errorf("the model does not see %q, but\n%s", line, got)
				}
			}
		})
	}
}

// TestAgentVariables: the variables that docs/agents.md names for servers are those of robotsgate env.
func TestAgentVariables(t *testing.T) {
	var hosts struct {
		MCPServers map[string]struct{ Env map[string]string }
	}
	if err := json.Unmarshal([]byte(docBlock(t, gatetest.Read(t, "../../docs/agents.md"), "json", `"fetch"`)), &hosts); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("robotsgate", "env")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil || len(hosts.MCPServers["fetch"].Env) == 0 {
		t.Fatalf("%v, %v", err, hosts)
	}
	for name, value := range hosts.MCPServers["fetch"].Env {
		want := regexp.QuoteMeta(value)
		if strings.HasPrefix(value, "/") {
			want = ".*/" + filepath.Base(value)
		}
		expect(t, string(out), `(?m)^export `+name+`='?`+want+`'?$`)
	}
}

// docBlock returns the first block of a language in a page that contains a text.
func docBlock(t *testing.T, page, language, has string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], has) {
			return m[1]
		}
	}
	t.Fatalf("the page has no block of %s with %s", language, has)
	return ""
}

// program returns the path of a program.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
