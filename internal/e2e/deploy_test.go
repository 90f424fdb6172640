package e2e

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"

	"robotsgate/internal/ca"
	"robotsgate/internal/cli"
	"robotsgate/internal/fleet"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
)

// validConfig returns a configuration after robotsgate validate has accepted it. The only permitted warning is that of an
// open proxy, since the network limits the clients. The CA's files and the fleet's key are made where it names them.
func validConfig(t *testing.T, text string) *gate.Config {
	t.Helper()
	dir := t.TempDir()
	if _, err := ca.Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fleet.key"), []byte(strings.Repeat("key ", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FLEET_PASSWORD", "0123456789abcdef")
	for _, folder := range []string{"/run/secrets/", "/ca/", "/fleet/"} {
		text = strings.ReplaceAll(text, " "+folder, " "+dir+"/")
	}
	file := filepath.Join(dir, "config.yaml")
	gatetest.Write(t, file, text)
	out, err := exec.CommandContext(t.Context(), "robotsgate", "validate", file).CombinedOutput()
	if err != nil {
		t.Fatalf("validate: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "warning") && !strings.Contains(line, "open proxy") {
			t.Errorf("validate: %s", line)
		}
	}
	c, err := gate.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// documents returns the manifests in a text by kind and name. A member that occurs twice is an error.
func documents(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var m map[string]any
		err := dec.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%v\n%s", err, text)
		case m != nil: // not only comments
			all[m["kind"].(string)+" "+member(m, "metadata", "name").(string)] = m
		}
	}
}

// manifests returns the documents of a file in deploy/.
func manifests(t *testing.T, file string) map[string]map[string]any {
	t.Helper()
	return documents(t, gatetest.Read(t, "../../deploy/"+file))
}

// member returns what is below names, or nil.
func member(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// TestDeployConfigs: every configuration in deploy/ is valid, those in ConfigMaps and in the chart's ones too.
func TestDeployConfigs(t *testing.T) {
	for _, file := range []string{"gate/config.yaml", "image/config.yaml", "fleet/config.yaml", "systemd/config.yaml", "transparent/config.yaml"} {
		t.Run(file, func(t *testing.T) { validConfig(t, gatetest.Read(t, "../../deploy/"+file)) })
	}
	for _, file := range []string{"kubernetes.yaml", "fleet/kubernetes.yaml", "transparent/kubernetes.yaml"} {
		t.Run(file, func(t *testing.T) { wantManifests(t, manifests(t, file)) })
	}
}

// wantManifests checks the configuration and the commands of a gate in manifests, and that its clients have no way
// around it.
func wantManifests(t *testing.T, all map[string]map[string]any) {
	t.Helper()
	parser, err := kong.New(&cli.Commands{})
	if err != nil {
		t.Fatal(err)
	}
	configs, commands := 0, 0
	for name, m := range all {
		if text, ok := member(m, "data", "config.yaml").(string); ok {
			validConfig(t, text)
			configs++
		}
		spec := member(m, "spec", "template", "spec")
		if m["kind"] == "Pod" {
			spec = m["spec"]
		}
		for _, list := range []string{"containers", "initContainers"} {
			containers, _ := member(spec, list).([]any)
			for _, c := range containers {
				if image, _ := member(c, "image").(string); !strings.HasPrefix(image, "robotsgate") || member(c, "args") == nil {
					continue
				}
				var args []string
				for _, arg := range member(c, "args").([]any) {
					args = append(args, arg.(string))
				}
				if _, err := parser.Parse(args); err != nil {
					t.Errorf("%s: robotsgate %s: %v", name, strings.Join(args, " "), err)
				}
				commands++
			}
		}
	}
	if configs != 1 || commands == 0 {
		t.Errorf("%d configurations and %d commands in %q", configs, commands, slices.Collect(maps.Keys(all)))
	}
	if policy, ok := all["NetworkPolicy only-through-the-gate"]; ok {
		text, _ := yaml.Marshal(member(policy, "spec", "egress"))
		if strings.Contains(string(text), "ipBlock") {
			t.Errorf("crawlers may connect to addresses without the gate:\n%s", text)
		}
	}
}

// TestCompose: in the compose files crawlers have no network but one whose only way out is a gate, and the commands exist.
func TestCompose(t *testing.T) {
	for _, file := range []string{"compose.yaml", "fleet/compose.yaml"} {
		var c map[string]any
		if err := yaml.Unmarshal([]byte(gatetest.Read(t, "../../deploy/"+file)), &c); err != nil {
			t.Fatal(err)
		}
		if got := member(c, "services", "crawler", "networks"); !reflect.DeepEqual(got, []any{"crawl"}) || member(c, "networks", "crawl", "internal") != true {
			t.Errorf("%s: the crawler is in the networks %v, crawl is internal: %v", file, got, member(c, "networks", "crawl", "internal"))
		}
	}
}

// TestFleetUser: the store's user in deploy/fleet and docs/fleet.md has the rights that a gate needs.
func TestFleetUser(t *testing.T) {
	for file, begin := range map[string]string{"../../deploy/fleet/users.acl": "user gate on >PASSWORD ", "../../docs/fleet.md": "ACL SETUSER gate on >PASSWORD "} {
		if want := begin + fleet.Rights("robotsgate") + "\n"; !strings.Contains(gatetest.Read(t, file), want) {
			t.Errorf("%s does not have %s", file, want)
		}
	}
}

// TestService checks deploy/robotsgate.service with systemd's own program.
func TestService(t *testing.T) {
	gatetest.Needs(t, "systemd-analyze")
	text := strings.Replace(gatetest.Read(t, "../../deploy/robotsgate.service"), "ExecStart=/usr/local/bin/robotsgate", "ExecStart="+program(t, "robotsgate"), 1)
	file := filepath.Join(t.TempDir(), "robotsgate.service")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", file).CombinedOutput(); err != nil || bytes.Contains(out, []byte("robotsgate")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
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

// TestHelm lints and renders the chart of deploy/helm with the real helm. It renders the manifests of deploy/.
func TestHelm(t *testing.T) {
	gatetest.Needs(t, "helm")
	const chart = "../../deploy/helm"
	helm := func(args ...string) string {
		t.Helper()
		home := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "helm", args...)
		cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for _, mode := range []string{"single", "fleet", "sidecar"} {
		helm("lint", "--strict", chart, "--set", "mode="+mode)
	}
	for mode, file := range map[string]string{"single": "kubernetes.yaml", "fleet": "fleet/kubernetes.yaml"} {
		got := documents(t, helm("template", "robotsgate", chart, "--namespace=robotsgate", "--set=crawlers.closedNamespaces={crawlers}", "--set=mode="+mode))
		wantManifests(t, got)
		want := manifests(t, file)
		maps.DeleteFunc(want, func(name string, _ map[string]any) bool {
			return strings.HasPrefix(name, "Namespace ") || strings.HasPrefix(name, "Secret ") // not the chart's
		})
		for _, all := range []map[string]map[string]any{got, want} {
			data := all["ConfigMap robotsgate"]["data"].(map[string]any)
			var config any
			if err := yaml.Unmarshal([]byte(data["config.yaml"].(string)), &config); err != nil {
				t.Fatal(err)
			}
			data["config.yaml"] = config
			if claim := all["PersistentVolumeClaim robotsgate-data"]; claim != nil {
				delete(claim["metadata"].(map[string]any), "annotations") // of the chart: uninstall leaves the evidence
			}
		}
		for name := range maps.Keys(want) {
			if !reflect.DeepEqual(got[name], want[name]) {
				g, _ := yaml.Marshal(got[name])
				w, _ := yaml.Marshal(want[name])
				t.Errorf("%s: got\n%s\nwant that of deploy/%s\n%s", name, g, file, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("the chart has %q, deploy/%s has %q", slices.Sorted(maps.Keys(got)), file, slices.Sorted(maps.Keys(want)))
		}
	}
}

// TestStaticBinary builds the program as the Dockerfile does. The binary must run in an image without a C library.
func TestStaticBinary(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "robotsgate")
	build := gatetest.Matches(`(?m)^RUN (CGO_ENABLED=0 go build -trimpath .*)$`, gatetest.Read(t, "../../Dockerfile"))
	if len(build) != 1 {
		t.Fatalf("the Dockerfile builds with %q", build)
	}
	cmd := exec.Command("sh", "-c", strings.Replace(build[0], "/robotsgate", binary, 1))
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic loader")
		}
	}
}
