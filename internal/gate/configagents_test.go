package gate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/keyfile"
)

// TestAgents: crawlers with one agent have one directory, which has each key once.
func TestAgents(t *testing.T) {
	dir := t.TempDir()
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		key, err := keyfile.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		ids[key.ID()] = name
	}
	c, err := ParseConfig(filepath.Join(dir, "gate.yaml"), []byte(`
crawlers:
- {name: first, sign: {key_file: b, agent: "https://bots.example.com"}, user_agents: [a]}
- {name: unsigned, user_agents: [b]}
- {name: second, sign: {key_file: c, agent: "https://other.example:8443/"}, user_agents: [c]}
- {name: third, sign: {key_file: a, agent: "HTTPS://Bots.Example.com:443/"}, user_agents: [d]}
- {name: fourth, sign: {key_file: b, agent: "https://bots.example.com"}}
`), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, agent := range c.Agents() {
		var line strings.Builder
		line.WriteString(agent.Origin + " " + agent.Authority())
		for _, key := range agent.Keys {
			line.WriteString(" " + ids[key.ID()])
		}
		got = append(got, line.String())
	}
	want := []string{"https://bots.example.com bots.example.com b a", "https://other.example:8443 other.example:8443 c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if agents := DefaultConfig().Agents(); len(agents) != 0 {
		t.Errorf("the defaults have the agents %s", fmt.Sprint(agents))
	}
}
