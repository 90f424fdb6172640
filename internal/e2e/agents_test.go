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
	"slices"
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

// A serverCommand is an entry of the file with which programs start MCP servers.
type serverCommand struct {
	Command string
	Args    []string
	Env     map[string]string
}

// start starts a server in a folder, with the few variables that programs give to servers.
func (c serverCommand) start(t *testing.T, dir string) *mcpServer {
	t.Helper()
	cmd := exec.Command(c.Command, c.Args...)
	cmd.Path = filepath.Join(dir, "bin", c.Command)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, agentEnv(dir), t.Output()
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return startServer(t, cmd)
}

// startServer starts an MCP server, which ends with the test.
func startServer(t *testing.T, cmd *exec.Cmd) *mcpServer {
	t.Helper()
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

// agentEnv returns the environment of commands with a folder as their home. The desktop is one where
// Chromium ignores the proxy variables.
func agentEnv(dir string) []string {
	return []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir,
		"GORACE=" + os.Getenv("GORACE"), "XDG_CURRENT_DESKTOP=GNOME"}
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

// tool returns what the model sees of a tool's result, without the references to a page's elements.
func (s *mcpServer) tool(t *testing.T, name string, arguments map[string]string) string {
	t.Helper()
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(s.call(t, "tools/call", map[string]any{"name": name, "arguments": arguments}), &result); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, c := range result.Content {
		text.WriteString(c.Text + "\n")
	}
	return regexp.MustCompile(` \[ref=\w+\]`).ReplaceAllString(text.String(), "")
}

// page opens a URL in Playwright's server and returns what the model sees of the page.
func (s *mcpServer) page(t *testing.T, url string) string {
	t.Helper()
	title := regexp.MustCompile("(?m)^- Page Title: .*").FindString(s.tool(t, "browser_navigate", map[string]string{"url": url}))
	text := s.tool(t, "browser_snapshot", map[string]string{})
	if title == "" || !strings.Contains(text, title+"\n") {
		t.Errorf("the title was %q, then\n%s", title, text)
	}
	return text
}

// agents is a folder with the programs that docs/agents.md names, and a gate with a login for the
// crawler agent.
type agents struct {
	*gatetest.Site
	dir, doc string
}

func newAgents(t *testing.T) *agents {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("correct-horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	files, dir := t.TempDir(), t.TempDir()
	gatetest.Write(t, filepath.Join(files, "robots.txt"), "User-agent: ResearchBot\nDisallow: /private/\n")
	gatetest.Write(t, filepath.Join(files, "page.html"), "<title>Page</title><h1>What everybody may read</h1>")
	gatetest.Write(t, filepath.Join(files, "page.html.headers"), "Content-Type: text/html\n")
	a := &agents{gatetest.ServeSite(t, files, t.TempDir(), fmt.Sprintf("admin: {listen: \"\"}\nlog: {audit: audit.jsonl}\nunknown_clients: refuse\n"+
		"crawlers: [{name: agent, product_tokens: [ResearchBot], login: {user: agent, password_bcrypt: %q}}]\n", hash)), dir, ""}
	data := filepath.Join(filepath.Dir(a.Config), "data")
	a.doc = strings.NewReplacer("127.0.0.1:9309", strings.TrimPrefix(a.Proxy, "http://"), "USER", "agent", "PASSWORD", "correct-horse",
		"/home/you", data, "shop.example/robots.txt", "shop.invalid/robots.txt").Replace(gatetest.Read(t, "../../docs/agents.md"))
	// A gate of its own has the same CA, a log of its own, and no crawlers.
	own := filepath.Join(filepath.Dir(a.Config), "own.yaml")
	config, _, _ := strings.Cut(gatetest.Read(t, a.Config), "unknown_clients:")
	gatetest.Write(t, own, strings.Replace(config, "audit.jsonl", "own.jsonl", 1))
	modules := abs(t, "testdata/clients/node_modules")
	for file, script := range map[string]string{
		"robotsgate": `command=$1; shift; [ "$command" = demo ] || set -- -c ` + own + ` "$@"; exec ` + program(t, "robotsgate") + ` "$command" "$@"`,
		// Playwright's package without a browser uses Debian's, and a sandbox that root cannot have is left out.
		"npx": `package=$1; shift; case $package in
@playwright/mcp@0.0.83) exec ` + abs(t, node()) + " " + modules + `/@playwright/mcp/cli.js --executable-path /usr/bin/chromium --no-sandbox "$@" ;;
mcp-fetch-server@1.1.2) exec ` + abs(t, node()) + " " + modules + `/mcp-fetch-server/dist/index.js "$@" ;;
esac; exit 1`,
	} {
		gatetest.Write(t, filepath.Join(dir, "bin", file), "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(dir, "bin", file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// server returns the entry of the page's JSON for a server.
func (a *agents) server(t *testing.T, name string) serverCommand {
	t.Helper()
	var file struct{ MCPServers map[string]serverCommand }
	if err := json.Unmarshal([]byte(docBlock(t, a.doc, "json", `"`+name+`": {`+"\n      \"command\"")), &file); err != nil {
		t.Fatal(err)
	}
	return file.MCPServers[name]
}

// refused checks that the audit log has the refusal of a crawler's request.
func (a *agents) refused(t *testing.T, log, crawler string) {
	t.Helper()
	cmd := exec.Command("robotsgate", "audit", "--json", "--denied", "--crawler", crawler, filepath.Join(filepath.Dir(a.Config), log))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	expect(t, string(out), `"path":"/private/".*"token":"ResearchBot"`)
}

// TestAgents runs MCP servers as docs/agents.md says: Playwright's with a gate of its own, in the
// demonstration and with a login, and one with an HTTP client.
func TestAgents(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "certutil")
	gatetest.Needs(t, "chromium")
	mustHaveModule(t, "@playwright/mcp")
	mustHaveModule(t, "mcp-fetch-server")
	a := newAgents(t)
	trust := exec.Command("sh", "-ec", docBlock(t, a.doc, "sh", "certutil"))
	trust.Dir, trust.Env = a.dir, agentEnv(a.dir)
	if out, err := trust.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	browser := func(t *testing.T, c serverCommand) {
		s := c.start(t, a.dir)
		if got := s.page(t, "https://shop.invalid/page.html"); !strings.Contains(got, "What everybody may read") {
			t.Errorf("the model sees\n%s", got)
		}
		got := s.page(t, "https://shop.invalid/private/")
		for line := range strings.Lines(docBlock(t, a.doc, "text", "403 Refused")) {
			if !strings.Contains(got, line) {
				t.Errorf("the model does not see %q, but\n%s", line, got)
			}
		}
	}
	t.Run("a gate of its own", func(t *testing.T) {
		browser(t, a.server(t, "browser"))
		a.refused(t, "own.jsonl", "default")
		if log := gatetest.Read(t, filepath.Join(filepath.Dir(a.Config), "own.jsonl")); !strings.Contains(log, `"user_agent":"ResearchBot/1.0"`) {
			t.Errorf("the User-Agent is not that of the page:\n%s", log)
		}
	})
	t.Run("the demonstration", func(t *testing.T) {
		c := a.server(t, "browser")
		c.Args = append([]string{"demo"}, c.Args[slices.Index(c.Args, "--"):]...)
		got := c.start(t, a.dir).page(t, "http://shop.example/private/plans.html")
		expect(t, got, `Line 2 of http://shop.example/robots.txt says .*Disallow: /private/`)
	})
	t.Run("a login", func(t *testing.T) {
		gatetest.Write(t, filepath.Join(a.dir, "login.json"), docBlock(t, a.doc, "json", `"launchOptions"`))
		browser(t, serverCommand{Command: "npx", Args: []string{"@playwright/mcp@0.0.83", "--headless", "--isolated", "--config", "login.json"}})
		a.refused(t, "audit.jsonl", "agent")
	})
	t.Run("an HTTP client", func(t *testing.T) {
		c := a.server(t, "fetch")
		for _, name := range []string{"http_proxy", "https_proxy"} {
			c.Env[name] = strings.Replace(c.Env[name], "//", "//agent:correct-horse@", 1)
		}
		s := c.start(t, a.dir)
		expect(t, s.tool(t, "fetch_txt", map[string]string{"url": "https://shop.invalid/page.html"}), "What everybody may read")
		expect(t, s.tool(t, "fetch_txt", map[string]string{"url": "https://shop.invalid/private/"}), "HTTP error: 403")
	})
}

// TestAgentVariables: the variables that docs/agents.md names for servers are those of robotsgate env.
func TestAgentVariables(t *testing.T) {
	fetch := (&agents{doc: gatetest.Read(t, "../../docs/agents.md")}).server(t, "fetch")
	cmd := exec.Command("robotsgate", "env")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil || len(fetch.Env) == 0 {
		t.Fatalf("%v, %v", err, fetch)
	}
	for name, value := range fetch.Env {
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
