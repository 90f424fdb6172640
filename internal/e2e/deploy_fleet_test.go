package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/fleet"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
)

// fleetConfig returns a configuration of deploy/fleet, with its secrets in a folder and its store at an
// address; "" leaves the address.
func fleetConfig(t *testing.T, text, address string) (*gate.Config, string) {
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
	if address != "" {
		host := strings.TrimSpace(text[strings.Index(text, "@")+1:])
		host, _, _ = strings.Cut(host, "\n")
		text = strings.Replace(text, "@"+host, "@"+address, 1)
	}
	return validConfig(t, text), text
}

// TestDeployFleet checks the files of deploy/fleet. If there is a redis-server, it is started with the
// command and the users of the compose file, and used with the gates' configuration.
func TestDeployFleet(t *testing.T) {
	c := compose(t, "fleet/compose.yaml")
	image := dockerfile(t)
	text := gatetest.Read(t, "../../deploy/fleet/config.yaml")
	settings, _ := fleetConfig(t, text, "")
	one, two, valkey, crawler := c.Services["gate-1"], c.Services["gate-2"], c.Services["valkey"], c.Services["crawler"]

	t.Run("the gates are the only way out, and to Valkey", func(t *testing.T) {
		for name, s := range c.Services {
			want := map[string]string{"crawler": "crawl", "valkey": "store"}[name]
			if want == "" {
				want = "map[crawl:{[gate]} outside:{[]} store:{[]}]"
			}
			wantSame(t, "networks of "+name, s.networks(t), want)
		}
		wantSame(t, "internal networks", fmt.Sprint(c.Networks), "map[crawl:{true} outside:{false} store:{true}]")
	})
	t.Run("the gates differ only in their data", func(t *testing.T) {
		if slices.Equal(one.Volumes, two.Volumes) || len(one.Volumes) != 2 || one.Volumes[1] != two.Volumes[1] {
			t.Errorf("volumes %q and %q", one.Volumes, two.Volumes)
		}
		wantSame(t, "configuration", one.Volumes[1], "./config.yaml:"+execForm(t, final(t, image, "CMD"))[2]+":ro")
		for i, s := range []struct{ volumes []string }{{one.Volumes}, {two.Volumes}} {
			wantSame(t, "data", s.volumes[0], fmt.Sprintf("data-%d:%s", i+1, settings.DataDir))
		}
		wantSame(t, "image", one.Image+two.Image, "robotsgaterobotsgate")
		for _, file := range []string{settings.Fleet.KeyFile, settings.HTTPS.CACert, settings.HTTPS.CAKey} {
			if !slices.Contains(one.Secrets, filepath.Base(file)) || c.Secrets[filepath.Base(file)].File == "" {
				t.Errorf("the gates don't have %s", file)
			}
		}
	})
	t.Run("gates that end have time, and gates that start wait for nothing", func(t *testing.T) {
		one.wantGate(t, settings)
		two.wantGate(t, settings)
		if settings.Limits.ShutdownDelay == 0 {
			t.Error("clients get no time to go to the other gate: limits.shutdown_delay is 0")
		}
		wantSame(t, "what the gates depend on", len(one.DependsOn)+len(two.DependsOn), 0)
		wantSame(t, "the crawler's conditions", fmt.Sprint(crawler.DependsOn), "map[gate-1:{service_healthy} gate-2:{service_healthy}]")
	})
	t.Run("hardened", func(t *testing.T) {
		for name, s := range c.Services {
			if name != "crawler" {
				s.wantHardened(t, name)
			}
		}
	})
	t.Run("the store's user has the rights that a gate needs", func(t *testing.T) {
		want := "user gate on >PASSWORD " + fleet.Rights(settings.Fleet.Prefix) + "\n"
		if users := gatetest.Read(t, "../../deploy/fleet/users.acl"); !strings.Contains(users, want) {
			t.Errorf("users.acl is\n%swithout the line\n%s", users, want)
		}
	})
	t.Run("doctor finds nothing wrong", func(t *testing.T) {
		address := startValkey(t, valkey.Command[0])
		_, file := fleetConfig(t, text, address)
		wantHealthyFleet(t, file)
	})
}

// TestFleetCommands runs the commands of docs/fleet.md that make secrets, without those of Docker and
// Kubernetes, and uses what they make.
func TestFleetCommands(t *testing.T) {
	page := gatetest.Read(t, "../../docs/fleet.md")
	deploy, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	commands := func(heading string) (dir string) {
		t.Helper()
		_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
		_, block, _ := strings.Cut(section, "```sh\n")
		block, _, _ = strings.Cut(block, "```")
		var script strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
			if word, _, _ := strings.Cut(line, " "); !slices.Contains([]string{"docker", "kubectl", "sudo"}, word) {
				script.WriteString(strings.NewReplacer("cp -r deploy/", "cp -r "+deploy+"/", " deploy/", " "+deploy+"/").Replace(line))
			}
		}
		dir = t.TempDir()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script.String())
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, script.String(), out)
		}
		return dir
	}

	made := filepath.Join(commands("Compose"), "fleet")
	for _, file := range []string{"secrets/fleet.key", "secrets/ca-key.pem", "trust/ca.pem", "trust/bundle.pem", "compose.yaml", "config.yaml", "users.acl"} {
		if gatetest.Read(t, filepath.Join(made, file)) == "" {
			t.Errorf("%s is empty", file)
		}
	}
	if _, err := (fleet.Config{KeyFile: filepath.Join(made, "secrets/fleet.key")}).ReadKey(); err != nil {
		t.Error(err)
	}
	if _, password, _ := strings.Cut(gatetest.Read(t, filepath.Join(made, ".env")), "FLEET_PASSWORD="); len(strings.TrimSpace(password)) != 48 {
		t.Errorf("the password is %q", password)
	}

	made = commands("Kubernetes")
	key, password := gatetest.Read(t, filepath.Join(made, "fleet.key")), gatetest.Read(t, filepath.Join(made, "password"))
	users := gatetest.Read(t, filepath.Join(made, "users.acl"))
	if len(key) != 32 || len(password) != 48 || strings.Contains(users, "PASSWORD") || strings.Contains(users, password) {
		t.Errorf("%d bytes of key, password %q, users\n%s", len(key), password, users)
	}
	server := gatetest.Redis(t, "--aclfile", filepath.Join(made, "users.acl"))
	address := strings.Replace(server.Address(), "://", "://gate:"+password+"@", 1)
	findings := fleet.Check(t.Context(), fleet.Options{Key: []byte(key), Settings: fleet.Settings{Config: fleet.Config{Address: fleet.Address(address), Prefix: "robotsgate", Timeout: time.Second}}})
	for _, f := range findings {
		if !f.OK {
			t.Errorf("%+v", f)
		}
	}
	if want := fleet.Rights("robotsgate"); !strings.Contains(page, "ACL SETUSER gate on >PASSWORD "+want+"\n") {
		t.Errorf("docs/fleet.md does not have the rights %s", want)
	}
}

// startValkey runs the command of deploy/fleet/compose.yaml for Valkey, and returns its host and port.
func startValkey(t *testing.T, command string) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if program, err = exec.LookPath("valkey-server"); err != nil {
			t.Skip("neither redis-server nor valkey-server is installed")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir, err := filepath.Abs("../../deploy/fleet")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	command = strings.NewReplacer("$$", "$", "/etc/valkey/", dir+"/", "/run/valkey/", t.TempDir()+"/",
		"exec valkey-server", "exec "+program+" --bind 127.0.0.1 --port "+port).Replace(command)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-euc", command)
	cmd.Env, cmd.Dir = append(os.Environ(), "FLEET_PASSWORD=0123456789abcdef"), t.TempDir()
	var log gatetest.Output
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	listens := func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s", &log)
		}
	}()
	gatetest.Becomes(t, 10*time.Second, program+" listens", listens)
	return address
}

// wantHealthyFleet runs doctor with a configuration. No gate runs, but all checks of the fleet pass.
func wantHealthyFleet(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	gatetest.Write(t, file, text)
	out, _ := exec.CommandContext(t.Context(), "robotsgate", "doctor", "-c", file).CombinedOutput() // exit status 1: there is no gate
	ok := 0
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "fleet" && words[2] == "ok" {
			ok++
		}
	}
	if ok != 3 {
		t.Errorf("doctor:\n%s", out)
	}
}

func TestKubernetesFleet(t *testing.T) {
	all := manifests(t, "fleet/kubernetes.yaml")
	for _, kind := range []string{"Namespace robotsgate", "Namespace crawlers", "ConfigMap robotsgate", "Secret robotsgate-ca", "Secret robotsgate-fleet",
		"StatefulSet robotsgate", "StatefulSet robotsgate-valkey", "Service robotsgate", "Service robotsgate-gates", "Service robotsgate-valkey",
		"PodDisruptionBudget robotsgate", "NetworkPolicy robotsgate", "NetworkPolicy robotsgate-valkey", "NetworkPolicy only-through-the-gate"} {
		if _, ok := all[kind]; !ok {
			t.Fatalf("deploy/fleet/kubernetes.yaml has no %s", kind)
		}
	}
	settings, _ := fleetConfig(t, all["ConfigMap robotsgate"].Data["config.yaml"], "")
	gates, valkey := all["StatefulSet robotsgate"].Spec, all["StatefulSet robotsgate-valkey"].Spec
	lone := manifests(t, "kubernetes.yaml")
	app, store := fmt.Sprint(gates.Template.Metadata.Labels), fmt.Sprint(valkey.Template.Metadata.Labels)

	t.Run("a gate is that of deploy/kubernetes.yaml, in a fleet", func(t *testing.T) {
		is, was := gates.Template.Spec.Containers[0], lone["Deployment robotsgate"].Spec.Template.Spec.Containers[0]
		wantSame(t, "image and arguments", fmt.Sprint(is.Image, is.Args, is.Ports), fmt.Sprint(was.Image, was.Args, was.Ports))
		wantSame(t, "probes", fmt.Sprint(is.Readiness, is.Liveness, is.Startup), fmt.Sprint(was.Readiness, was.Liveness, was.Startup))
		wantSame(t, "security", fmt.Sprint(is.Security.ReadOnly, *is.Security.Escalation, is.Security.Capabilities, gates.Template.Spec.Security),
			fmt.Sprint(was.Security.ReadOnly, *was.Security.Escalation, was.Security.Capabilities, lone["Deployment robotsgate"].Spec.Template.Spec.Security))
		if fmt.Sprint(all["Namespace crawlers"]) != fmt.Sprint(lone["Namespace crawlers"]) ||
			fmt.Sprint(all["NetworkPolicy only-through-the-gate"]) != fmt.Sprint(lone["NetworkPolicy only-through-the-gate"]) {
			t.Error("the crawlers' namespace or its policy differ")
		}
		if grace := time.Duration(gates.Template.Spec.Grace) * time.Second; grace <= shutdownTime(settings) || settings.Limits.ShutdownDelay == 0 {
			t.Errorf("terminationGracePeriodSeconds is %v, the gate takes up to %v", grace, shutdownTime(settings))
		}
	})
	t.Run("three gates, spread and not ended together", func(t *testing.T) {
		wantSame(t, "replicas", gates.Replicas, 3)
		wantSame(t, "claims", fmt.Sprint(gates.Claims), "[{{data}}]")
		budget := all["PodDisruptionBudget robotsgate"].Spec
		wantSame(t, "maxUnavailable", budget.MaxUnavailable, 1)
		var selected labels
		if err := budget.Selector.Decode(&selected); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "pods of the budget", fmt.Sprint(selected.MatchLabels), app)
		var keys []string
		for _, s := range gates.Template.Spec.Spread {
			keys = append(keys, s.TopologyKey)
			wantSame(t, "pods that are spread", fmt.Sprint(s.LabelSelector.MatchLabels), app)
		}
		wantSame(t, "spread over", strings.Join(keys, " "), "kubernetes.io/hostname topology.kubernetes.io/zone")
	})
	t.Run("secrets", func(t *testing.T) {
		for _, name := range []string{"robotsgate-ca", "robotsgate-fleet"} {
			if s := all["Secret "+name]; len(s.Data) > 0 || s.Type != "Opaque" {
				t.Errorf("applying the file again would overwrite %s: %+v", name, s)
			}
		}
		env := gates.Template.Spec.Containers[0].Env[0]
		wantSame(t, "password", env.Name+" "+env.ValueFrom.SecretKeyRef.Name+" "+env.ValueFrom.SecretKeyRef.Key, "FLEET_PASSWORD robotsgate-fleet password")
		for pod, items := range map[*pod]string{&gates.Template.Spec: "[{fleet.key fleet.key}]", &valkey.Template.Spec: "[{users.acl users.acl}]"} {
			found := false
			for _, v := range pod.Volumes {
				found = found || v.Secret.SecretName == "robotsgate-fleet" && fmt.Sprint(v.Secret.Items) == items
			}
			if !found {
				t.Errorf("no volume with %s", items)
			}
		}
	})
	t.Run("Valkey and the way to it", func(t *testing.T) {
		c := valkey.Template.Spec.Containers[0]
		if !slices.Contains(c.Command, "/fleet/users.acl") || c.Mounts[0].MountPath != "/fleet" {
			t.Errorf("the command is %q, with the mounts %v", c.Command, c.Mounts)
		}
		port := strconv.Itoa(c.Ports[0].ContainerPort)
		if want := "@robotsgate-valkey:" + port; !strings.HasSuffix(settings.Fleet.Address.String(), want) {
			t.Errorf("fleet.address is %s, want …%s", settings.Fleet.Address, want)
		}
		var service map[string]string
		selector := all["Service robotsgate-valkey"].Spec.Selector
		if err := selector.Decode(&service); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "pods of the service", fmt.Sprint(service), store)
		policy := all["NetworkPolicy robotsgate-valkey"].Spec
		wantSame(t, "what connects to Valkey", fmt.Sprint(policy.PodSelector.MatchLabels, policy.Ingress, len(policy.Egress), policy.PolicyTypes),
			fmt.Sprintf("%s [{[{{%s}}] [{%s}]}] 0 [Ingress Egress]", store, app, port))
		reaches := false
		for _, rule := range all["NetworkPolicy robotsgate"].Spec.Egress {
			for _, to := range rule.To {
				reaches = reaches || fmt.Sprint(to.PodSelector.MatchLabels, rule.Ports) == store+" [{"+port+"}]"
			}
		}
		wantSame(t, "the gates reach Valkey", reaches, true)
	})
}
