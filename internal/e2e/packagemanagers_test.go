package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestPackageManagers runs npm, pnpm and yarn with the variables that robotsgate env prints. They
// must trust the gate's CA although their configuration names other roots.
func TestPackageManagers(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	site := gatetest.ServeSite(t, "testdata/clients/site", t.TempDir(), "admin: {listen: \"\"}\n")
	// .ci/long installs pnpm and yarn there.
	installed, err := filepath.Abs("testdata/clients/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + installed + ":" + os.Getenv("PATH")
	for _, name := range []string{"npm", "pnpm", "yarn"} {
		t.Run(name, func(t *testing.T) {
			works := exec.CommandContext(t.Context(), "sh", "-c", `command -v "$0"`, name)
			works.Env = []string{path}
			if works.Run() != nil {
				t.Skipf("%s is not installed: npm has it", name)
			}
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte("cafile=/etc/ssl/certs/ca-certificates.crt\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct{ begin, want string }{
				{"", `(?m)^` + name + ` +ok +goes through the gate and trusts its CA$`},
				{"unset npm_config_cafile", `(?m)^` + name + ` +no +goes through the gate, but does not trust its CA$`},
			} {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", `vars=$(robotsgate env -c "$0") || exit; eval "$vars"; `+c.begin+`
robotsgate doctor -c "$0" "$1"`, site.Config, name)
				cmd.Env = []string{path, "HOME=" + home}
				out, err := cmd.CombinedOutput()
				t.Logf("%v\n%s", err, out)
				expect(t, string(out), c.want)
			}
		})
	}
}
