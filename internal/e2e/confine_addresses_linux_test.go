package e2e

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestConfinedAddresses: the addresses of names in run --confine are public ones to Go, Python, Node and Rust, so that
// programs that refuse to fetch from private addresses work there.
func TestConfinedAddresses(t *testing.T) {
	t.Parallel()
	u := &confinedUser{name: "own", id: os.Getuid()}
	u.prepare(t)
	out, status := u.run(t, "getent hosts shop.invalid; getent hosts other.invalid")
	addresses := gatetest.Matches(`(?m)^(\S+) +\S+\.invalid`, out)
	if status != 0 || len(addresses) != 2 {
		t.Fatalf("status %d: %s", status, out)
	}
	dir := t.TempDir()
	for _, address := range addresses {
		if a := netip.MustParseAddr(address); a.IsPrivate() || !a.IsGlobalUnicast() {
			t.Errorf("Go takes %s for a private address", a)
		}
		for _, language := range []struct {
			name, program, debian string
			command               string
			want                  string
		}{
			{"Python", "python3", "python3", `python3 -c 'import ipaddress; print(ipaddress.ip_address("ADDRESS").is_global)'`, "True"},
			{"Rust", "rustc", "rustc", `RUSTC_BOOTSTRAP=1 rustc -o DIR/public testdata/clients/public.rs && DIR/public ADDRESS`, "true"},
			{"Node's ipaddr.js", "", "", abs(t, node()) + ` -e 'console.log(require("./testdata/clients/node_modules/ipaddr.js").parse("ADDRESS").range())'`, "unicast"},
		} {
			t.Run(language.name+" "+address, func(t *testing.T) {
				gatetest.Long(t)
				if language.program == "" {
					mustHaveModule(t, "ipaddr.js")
				} else {
					gatetest.Needs(t, language.program)
				}
				command := strings.NewReplacer("ADDRESS", address, "DIR", dir).Replace(language.command)
				out, err := exec.Command("sh", "-c", command).CombinedOutput()
				if got := strings.TrimSpace(string(out)); err != nil || got != language.want {
					t.Errorf("%s: got %s, %v", command, got, err)
				}
			})
		}
	}
}

// TestConfinedServer: the MCP server that docs/agents.md names, which refuses private addresses, works in run
// --confine.
func TestConfinedServer(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	mustHaveModule(t, "mcp-fetch-server")
	u := &confinedUser{name: "own", id: os.Getuid()}
	u.prepare(t)
	c := u.command(t, "exec "+abs(t, node())+" "+abs(t, "testdata/clients/node_modules/mcp-fetch-server/dist/index.js"))
	s := startServer(t, &exec.Cmd{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, SysProcAttr: c.SysProcAttr}) // which no context ends
	for _, url := range []string{"https://shop.invalid/page.html", "http://shop.invalid/page.html"} {
		expect(t, s.tool(t, "fetch_txt", map[string]string{"url": url}), "What everybody may read")
	}
	expect(t, s.tool(t, "fetch_txt", map[string]string{"url": "https://shop.invalid/private/plans.html"}), "HTTP error: 403")
}
