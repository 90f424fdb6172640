package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestUserAgentClients: with run --user-agent an origin sees that User-Agent of real clients, and no client hints.
// Without it Chromium sends its own, with hints.
func TestUserAgentClients(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	const named = "NewsBot/1.0 (+https://example.com/bot)"
	var mu sync.Mutex
	seen := map[string]http.Header{}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("no 127.0.0.2 here: %v", err)
	}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path] = r.Header
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
		}
	}))
	origin.Listener.Close()
	origin.Listener = l
	origin.Start()
	t.Cleanup(origin.Close)
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "run.yaml"), "data_dir: data\negress: {allow_private: [127.0.0.2/32]}\n")
	for _, client := range []struct {
		name, path string
		named      bool
		command    []string
	}{
		{"curl", "/curl", true, []string{"curl", "-s", "-H", "Sec-CH-UA: \"x\"", "URL"}},
		{"Scrapy", "/scrapy", true, []string{"scrapy", "runspider", "-s", "ROBOTSTXT_OBEY=False", "-L", "ERROR", "-a", "url=URL", abs(t, "testdata/clients/spider.py")}},
		{"Playwright", "/playwright", true, []string{abs(t, node()), abs(t, "testdata/clients/named.cjs"), "URL"}},
		{"Playwright by its own name", "/plain", false, []string{abs(t, node()), abs(t, "testdata/clients/named.cjs"), "URL"}},
	} {
		t.Run(client.name, func(t *testing.T) {
			switch client.command[0] {
			case "scrapy":
				gatetest.Needs(t, "scrapy")
			case "curl":
			default:
				mustHaveModule(t, "playwright-core")
				gatetest.Needs(t, "chromium")
			}
			args := []string{"run", "--quiet", "-c", "run.yaml"}
			if client.named {
				args = append(args, "--user-agent", named)
			}
			args = append(args, "--")
			for _, arg := range client.command {
				args = append(args, strings.Replace(arg, "URL", origin.URL+client.path, 1))
			}
			cmd := exec.CommandContext(t.Context(), "robotsgate", args...)
			cmd.Dir, cmd.Stderr = dir, t.Output()
			cmd.Env = append(os.Environ(), "HOME="+dir)
			if out, err := cmd.Output(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			h := seen[client.path]
			hinted := h.Get("Sec-Ch-Ua") != ""
			if agent := h.Get("User-Agent"); h == nil || (agent == named) != client.named || hinted == client.named {
				t.Errorf("the origin received %v", h)
			}
			if got := seen["/robots.txt"].Get("User-Agent"); client.named && got != named {
				t.Errorf("robots.txt was fetched by %q", got)
			}
		})
	}
}
