package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// pacQuestions are URLs, their hosts, and whether /proxy.pac must name the gate for them.
var pacQuestions = []struct {
	url, host string
	gate      bool
}{
	{"http://shop.example/x", "shop.example", true},
	{"https://shop.example/", "shop.example", true},
	{"http://robotsgate.invalid/", "robotsgate.invalid", true},
	{"http://localhost:8000/", "localhost", false},
	{"http://127.0.0.1:8000/", "127.0.0.1", false},
	{"http://[::1]:8000/", "::1", false},
	{"http://127.0.0.1.evil.example/", "127.0.0.1.evil.example", true},
	{"http://127.evil/", "127.evil", true},
	{"http://localhost.example/", "localhost.example", true},
	{"GATE/ca.pem", "127.0.0.1", false},
}

// TestConfigurationScript calls the function of /proxy.pac as a browser does.
func TestConfigurationScript(t *testing.T) {
	if err := exec.Command("node", "--version").Run(); err != nil {
		t.Skip("node is not installed: Debian's package nodejs has it")
	}
	gate := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n").Proxy
	script, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate+"/proxy.pac", http.StatusOK)
	var calls, want strings.Builder
	for _, q := range pacQuestions {
		fmt.Fprintf(&calls, "console.log(FindProxyForURL(%q, %q))\n", strings.Replace(q.url, "GATE", gate, 1), q.host)
		proxy := "DIRECT"
		if q.gate {
			proxy = "PROXY " + strings.TrimPrefix(gate, "http://")
		}
		fmt.Fprintln(&want, proxy)
	}
	out, err := exec.Command("node", "-e", script+calls.String()).CombinedOutput()
	if err != nil || string(out) != want.String() {
		t.Errorf("%v: got\n%s\nwant\n%s", err, out, &want)
	}
}
