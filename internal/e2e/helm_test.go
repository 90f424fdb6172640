package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/gatetest"
)

const chart = "../../deploy/helm"

// helm runs helm and returns what it prints.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("helm")
	if err != nil {
		t.Skip("helm is not installed: go install -C tools/helm tool")
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out), err
}

// rendered returns the documents of a chart by kind and name, for the release robotsgate in a namespace of that name.
func rendered(t *testing.T, chart string, args ...string) map[string]map[string]any {
	t.Helper()
	out, err := helm(t, append([]string{"template", "robotsgate", chart, "--namespace", "robotsgate"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, out)
}

// documents reads a stream of manifests. A member that occurs twice is an error.
func documents(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var m map[string]any
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if m == nil {
			continue // only comments
		}
		name := fmt.Sprint(m["kind"], " ", member(m, "metadata", "name"))
		if all[name] != nil {
			t.Errorf("there are two of %s", name)
		}
		all[name] = m
	}
}

// member returns what is below names, or nil.
func member(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// wantEqual compares two values of YAML.
func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, _ := yaml.Marshal(got)
	w, _ := yaml.Marshal(want)
	t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
}

// wantModel checks that a chart renders what a file of deploy/ has, member by member, which the tests of these files
// then speak for. Namespaces and Secrets are not the chart's.
func wantModel(t *testing.T, got map[string]map[string]any, file string) {
	t.Helper()
	want := documents(t, gatetest.Read(t, "../../deploy/"+file))
	maps.DeleteFunc(want, func(name string, _ map[string]any) bool {
		return strings.HasPrefix(name, "Namespace ") || strings.HasPrefix(name, "Secret ")
	})
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the chart has %q, deploy/%s has %q", names, file, slices.Sorted(maps.Keys(want)))
	}
	for _, all := range []map[string]map[string]any{got, want} {
		data := all["ConfigMap robotsgate"]["data"].(map[string]any)
		var config any
		if err := yaml.Unmarshal([]byte(data["config.yaml"].(string)), &config); err != nil {
			t.Fatal(err)
		}
		data["config.yaml"] = config
	}
	for name, document := range want {
		wantEqual(t, name, got[name], document)
	}
}

// config returns the configuration that a chart renders.
func config(t *testing.T, all map[string]map[string]any, name string) string {
	t.Helper()
	text, ok := member(all["ConfigMap "+name], "data", "config.yaml").(string)
	if !ok {
		t.Fatalf("no ConfigMap %s with config.yaml in %q", name, slices.Collect(maps.Keys(all)))
	}
	return text
}

// TestHelm lints and renders the chart of deploy/helm with the real helm, and compares it with the manifests of deploy/.
func TestHelm(t *testing.T) {
	const closed = "--set=crawlers.closedNamespaces={crawlers}"
	t.Run("lint", func(t *testing.T) {
		for _, mode := range []string{"single", "fleet", "sidecar"} {
			if _, err := helm(t, "lint", "--strict", chart, "--set", "mode="+mode); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("one gate", func(t *testing.T) {
		all := rendered(t, chart, closed)
		validConfig(t, config(t, all, "robotsgate"))
		// helm uninstall leaves the evidence.
		annotations := member(all["PersistentVolumeClaim robotsgate-data"], "metadata", "annotations")
		wantEqual(t, "annotations of the claim", annotations, map[string]any{"helm.sh/resource-policy": "keep"})
		delete(all["PersistentVolumeClaim robotsgate-data"]["metadata"].(map[string]any), "annotations")
		wantModel(t, all, "kubernetes.yaml")
	})
	t.Run("a fleet", func(t *testing.T) {
		all := rendered(t, chart, closed, "--set=mode=fleet")
		fleetConfig(t, config(t, all, "robotsgate"), "")
		wantModel(t, all, "fleet/kubernetes.yaml")
	})
	t.Run("a fleet with another store", func(t *testing.T) {
		all := rendered(t, chart, "--set=mode=fleet", "--set=fleet.address=rediss://gate:${FLEET_PASSWORD}@store.internal:6380")
		settings, _ := fleetConfig(t, config(t, all, "robotsgate"), "")
		wantSame(t, "the store", strings.HasSuffix(settings.Fleet.Address.String(), "@store.internal:6380"), true)
		for name := range all {
			if strings.Contains(name, "valkey") {
				t.Errorf("the chart has %s", name)
			}
		}
	})
	t.Run("a sidecar", testHelmSidecar)
	t.Run("further keys of the configuration", func(t *testing.T) {
		all := rendered(t, chart, "--set=config.limits.shutdown_delay=3s", "--set=config.unknown_clients=refuse", "--set=config.crawlers[0].name=news", "--set=config.crawlers[0].sources[0]=10.0.0.0/8")
		settings := validConfig(t, config(t, all, "robotsgate"))
		wantSame(t, "limits.shutdown_delay", settings.Limits.ShutdownDelay.String(), "3s")
		wantSame(t, "data_dir", settings.DataDir, "/data")
		wantSame(t, "crawlers", len(settings.Crawlers), 1)
	})
	t.Run("keys of the configuration", func(t *testing.T) {
		var schema struct {
			Properties struct {
				Config struct{ Properties map[string]any }
			}
		}
		if err := json.Unmarshal([]byte(gatetest.Read(t, filepath.Join(chart, "values.schema.json"))), &schema); err != nil {
			t.Fatal(err)
		}
		var keys map[string]any
		if err := yaml.Unmarshal([]byte(gatetest.Read(t, "../../config.yaml")), &keys); err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(schema.Properties.Config.Properties))
		wantEqual(t, "keys in values.schema.json", names, slices.Sorted(maps.Keys(keys)))
	})
	t.Run("the values of docs/deploy.md", func(t *testing.T) {
		var args []string
		for _, value := range gatetest.Matches(`--set '?([^ '\n]+)`, gatetest.Read(t, "../../docs/deploy.md")) {
			args = append(args, "--set="+value)
		}
		all := rendered(t, chart, args...)
		for _, name := range []string{"NetworkPolicy only-through-the-gate", "PrometheusRule robotsgate", "ServiceMonitor robotsgate"} {
			if all[name] == nil {
				t.Errorf("with %q the chart renders no %s", args, name)
			}
		}
		pod := member(all["Deployment robotsgate"], "spec", "template", "spec", "containers").([]any)[0]
		wantEqual(t, "image", member(pod, "image"), "registry.example/robotsgate:1.2.3")
	})
	t.Run("mistakes", func(t *testing.T) {
		for value, want := range map[string]string{
			"mod=fleet":             "'mod' not allowed",
			"mode=flet":             "must be one of",
			"fleet.replica=2":       "'replica' not allowed",
			"config.limit.a=1":      "at '/config': additional properties 'limit' not allowed",
			"config.listen=:1":      "config.listen is set by the chart",
			"config.data_dir=/":     "config.data_dir is set by the chart",
			"config.admin.listen=x": "config.admin.listen is set by the chart",
		} {
			if _, err := helm(t, "template", "robotsgate", chart, "--set", value); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", value, err, want)
			}
		}
	})
	t.Run("for the Prometheus operator", func(t *testing.T) {
		all := rendered(t, chart, "--set=serviceMonitor.enabled=true", "--set=prometheusRule.enabled=true", "--set=serviceMonitor.labels.release=prometheus")
		var rules any
		if err := yaml.Unmarshal([]byte(gatetest.Read(t, "../../deploy/alerts.yaml")), &rules); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "rules", all["PrometheusRule robotsgate"]["spec"], rules)
		monitor, service := all["ServiceMonitor robotsgate"], all["Service robotsgate-metrics"]
		wantEqual(t, "labels of the ServiceMonitor", member(monitor, "metadata", "labels"), map[string]any{"release": "prometheus"})
		wantEqual(t, "selector of the ServiceMonitor", member(monitor, "spec", "selector", "matchLabels"), member(service, "metadata", "labels"))
		wantEqual(t, "endpoints", member(monitor, "spec", "endpoints"), []any{map[string]any{"port": "admin", "path": "/metrics"}})
		pod := member(all["Deployment robotsgate"], "spec", "template", "metadata")
		wantEqual(t, "pods of the service", member(service, "spec", "selector"), member(pod, "labels"))
		wantEqual(t, "annotations of the pod", member(pod, "annotations"), nil)
		wantEqual(t, "port of the service", member(service, "spec", "ports"), []any{map[string]any{"name": "admin", "port": 9310, "targetPort": "admin"}})
	})
}

// testHelmSidecar renders a chart that has this one as a dependency, as the comment of templates/_sidecar.tpl says, and
// compares its pod with that of deploy/transparent/kubernetes.yaml.
func testHelmSidecar(t *testing.T) {
	_, example, _ := strings.Cut(gatetest.Read(t, filepath.Join(chart, "templates/_sidecar.tpl")), "\n\n")
	example, _, _ = strings.Cut(example, "*/")
	parent := filepath.Join(t.TempDir(), "crawler")
	if err := os.MkdirAll(filepath.Join(parent, "templates"), 0o755); err != nil {
		t.Fatal(err)
	}
	gatetest.Write(t, filepath.Join(parent, "Chart.yaml"), "apiVersion: v2\nname: crawler\nversion: 0.1.0\ndependencies:\n- {name: robotsgate, version: 0.1.0}\n")
	gatetest.Write(t, filepath.Join(parent, "values.yaml"), "robotsgate: {mode: sidecar}\n")
	gatetest.Write(t, filepath.Join(parent, "templates/pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: crawler}\nspec:\n"+example)
	if _, err := helm(t, "package", chart, "--destination", filepath.Join(parent, "charts")); err != nil {
		t.Fatal(err)
	}
	all := rendered(t, parent)
	want := documents(t, gatetest.Read(t, "../../deploy/transparent/kubernetes.yaml"))
	wantSame(t, "documents", fmt.Sprint(slices.Sorted(maps.Keys(all))), "[ConfigMap robotsgate-robotsgate Pod crawler]")
	validConfig(t, config(t, all, "robotsgate-robotsgate"))

	// The names of volumes and containers begin with robotsgate-, so that they are different from others of the pod.
	text, err := yaml.Marshal(all["Pod crawler"]["spec"])
	if err != nil {
		t.Fatal(err)
	}
	named := strings.ReplaceAll(string(text), "name: robotsgate-robotsgate", "name: robotsgate-transparent")
	for _, name := range []string{"redirect", "rules", "config", "ca", "data"} {
		named = strings.ReplaceAll(named, " name: robotsgate-"+name+"\n", " name: "+name+"\n")
	}
	var pod any
	if err := yaml.Unmarshal([]byte(named), &pod); err != nil {
		t.Fatal(err)
	}
	model := want["Pod crawler"]["spec"].(map[string]any)
	redirect := model["initContainers"].([]any)[0]
	member(redirect, "securityContext").(map[string]any)["runAsNonRoot"] = false // the pod may forbid root for all others
	wantEqual(t, "containers", member(pod, "initContainers"), model["initContainers"])
	volumes := slices.DeleteFunc(model["volumes"].([]any), func(v any) bool { return member(v, "name") == "trust" })
	wantEqual(t, "volumes", member(pod, "volumes"), volumes)
	wantEqual(t, "rules", member(all["ConfigMap robotsgate-robotsgate"], "data", "rules.nft"), member(want["ConfigMap robotsgate-transparent"], "data", "rules.nft"))
	var got, model2 any
	if err := errors.Join(yaml.Unmarshal([]byte(config(t, all, "robotsgate-robotsgate")), &got), yaml.Unmarshal([]byte(config(t, want, "robotsgate-transparent")), &model2)); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "configuration", got, model2)
}
