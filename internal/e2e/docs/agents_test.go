package docs

import (
	"os"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gate"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// TestAgentsExample decides by the list of docs/agents.md.
func TestAgentsExample(t *testing.T) {
	text := section(t, "docs/agents.md", "A list of what agents may reach")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	c, err := gate.ReadConfig("agents.yaml", strings.NewReader(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if warnings := c.Warnings(); len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	for _, request := range []struct{ crawler, method, url, want string }{
		{"coder", "GET", "https://proxy.golang.org/x", "robots"},
		{"coder", "POST", "https://proxy.golang.org/x", "deny not in the list"},
		{"coder", "POST", "https://github.com/example/repo.git/git-receive-pack", "robots"},
		{"coder", "GET", "https://github.com/another/repo", "deny not in the list"},
		{"coder", "GET", "https://go.dev/", "deny not in the list"},
		{"browser", "GET", "https://go.dev/", "robots"},
		{"browser", "GET", "https://en.wikipedia.org/wiki/Robots.txt", "robots"},
		{"browser", "GET", "https://pypi.org/", "deny not in the list"},
		{"browser", "GET", "https://evil.invalid/", "deny not in the list"},
	} {
		target, err := canonical.ParseURL(request.url)
		if err != nil {
			t.Fatal(err)
		}
		ask := policy.Request{Target: target, Method: request.method, Crawler: gate.Crawlers(c).Named(request.crawler)}
		got := "robots"
		if d, decided := policy.Overridden(c.Overrides, policy.Strict, ask, time.Now()); decided && d.Allow {
			got = "allow " + d.Note
		} else if decided {
			got = "deny " + d.Note
		}
		if got != request.want {
			t.Errorf("%+v: %s", request, got)
		}
	}
}
