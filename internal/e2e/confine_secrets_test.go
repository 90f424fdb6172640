//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestConfinedSecrets: a command can't read the keys and passwords that the configuration names or has.
func TestConfinedSecrets(t *testing.T) {
	t.Parallel()
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		u.run(t, "true") // makes a CA
		setUp := u.command(t, "")
		setUp.Path, setUp.Args = "/bin/sh", []string{"sh", "-c", `set -e
			umask 077
			mkdir -p keys/real
			ln -s real keys/link
			ln -s real/audit.key keys/audit.key
			./robotsgate keys new keys/real/sign.pem
			./robotsgate keys new keys/real/audit.key
			echo "SECRET of fleet, which is long enough" > keys/real/fleet.key
			cp data/ca-key.pem keys/real/ca-key.pem
			echo public > keys/real/other
			echo record > audit-2026-05-01T00-00-00.000.log`}
		if out, err := setUp.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(u.config)
		if err != nil {
			t.Fatal(err)
		}
		config := string(text) + fmt.Sprintf(`
log: {audit: %[1]s/audit.log, audit_key_file: keys/audit.key}
https: {ca_cert: data/ca.pem, ca_key: keys/real/ca-key.pem}
crawlers:
- name: news
  product_tokens: [news]
  user_agents: [news]
  sign: {key_file: keys/link/sign.pem, agent: "https://news.example"}
`, u.dir)
		gatetest.Write(t, u.config, config)
		out, _ := u.run(t, "cat gate.yaml; echo '{}' > gate.yaml || echo refused")
		if !strings.Contains(out, "data_dir:") || !strings.Contains(out, "refused") {
			t.Errorf("without a password: got %q, want the configuration and refused", out)
		}
		gatetest.Write(t, u.config, config+`fleet: {address: "redis://user:SECRET@127.0.0.1:1", key_file: keys/link/fleet.key}`)
		for _, c := range []struct{ name, shell, want string }{
			{"files", "cat gate.yaml keys/*.key keys/*/*.key keys/*/*.pem data/ca-key.pem || echo hidden", "hidden"},
			{"a file in its place", "rm -f keys/real/sign.pem || echo busy", "busy"},
			{"a rotated file of the log", "rm -f audit-2026*; echo x > audit-2026-05-01T00-00-00.000.log || cat audit-2026*", "record"},
			{"another file in its folder", "cat keys/real/other", "public"},
		} {
			out, status := u.run(t, c.shell)
			for _, secret := range []string{"SECRET of audit", "SECRET of fleet", "PRIVATE KEY", "redis://"} {
				if strings.Contains(out, secret) {
					t.Errorf("%s: the command reads %q", c.name, secret)
				}
			}
			if status == 125 || !strings.Contains(out, c.want) {
				t.Errorf("%s: got %q and status %d, want %s", c.name, out, status, c.want)
			}
		}
	})
}
