package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"

	"robotsgate/internal/ca"
	"robotsgate/internal/cli"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
)

// These tests compare the files of deploy/ with the program, its configuration and the
// Dockerfile.

// validConfig returns a configuration after robotsgate validate has accepted it. The only
// permitted warning is that of an open proxy, since the network limits the clients. If the
// configuration names the CA's files in /ca, they are created.
func validConfig(t *testing.T, text string) *gate.Config {
	t.Helper()
	dir := t.TempDir()
	if strings.Contains(text, "/ca/") {
		if _, err := ca.Open(dir); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "/ca/", dir+"/")
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

// understood reports an error for a command line that the program does not accept.
func understood(t *testing.T, args []string) {
	t.Helper()
	parser, err := kong.New(&cli.Commands{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Errorf("robotsgate %s: %v", strings.Join(args, " "), err)
	}
}

// wantSame compares a value of one file with that of another.
func wantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// shutdownTime is how long the gate may take to end.
func shutdownTime(c *gate.Config) time.Duration {
	return c.Limits.ShutdownDelay + c.Limits.ShutdownGrace
}

// A composeFile has the keys that the compose files of deploy/ use.
type composeFile struct {
	Gate     yaml.Node `yaml:"x-gate"`
	Services map[string]composeService
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]struct{}
	Secrets  map[string]struct{ File string }
}

type composeService struct {
	Image       string
	Build       string
	PullPolicy  string `yaml:"pull_policy"`
	User        string
	Profiles    []string
	Networks    yaml.Node
	NetworkMode string `yaml:"network_mode"`
	Secrets     []string
	Volumes     []string
	Tmpfs       []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Environment map[string]string
	Entrypoint  []string
	Command     []string
	Healthcheck struct {
		Test              []string
		Interval, Timeout string
		StartPeriod       string `yaml:"start_period"`
		Retries           int
		Disable           bool
	}
	Restart     string
	StopGrace   string   `yaml:"stop_grace_period"`
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Ulimits     struct{ Nofile int }
}

// compose reads a compose file of deploy/.
func compose(t *testing.T, file string) (c composeFile) {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(gatetest.Read(t, "../../deploy/"+file)))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// networks returns the networks of a service, with its aliases there.
func (s composeService) networks(t *testing.T) string {
	t.Helper()
	var list []string
	if s.Networks.Decode(&list) == nil {
		return strings.Join(list, " ")
	}
	var all map[string]struct{ Aliases []string }
	if err := s.Networks.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all)
}

// wantGate checks what each service that is a gate with these settings needs.
func (s composeService) wantGate(t *testing.T, c *gate.Config) {
	t.Helper()
	if grace, err := time.ParseDuration(s.StopGrace); err != nil || grace <= shutdownTime(c) {
		t.Errorf("stop_grace_period is %s, the gate takes up to %v", s.StopGrace, shutdownTime(c))
	}
	if s.Ulimits.Nofile < 2*c.Limits.MaxConnections {
		t.Errorf("%d open files are too few for %d connections", s.Ulimits.Nofile, c.Limits.MaxConnections)
	}
	if want := "http://" + c.Admin.Listen + "/readyz"; !slices.Contains(s.Healthcheck.Test, want) {
		t.Errorf("the health check is %q, without %s", s.Healthcheck.Test, want)
	}
}

// wantHardened checks that a service can do no more than it has to.
func (s composeService) wantHardened(t *testing.T, name string) {
	t.Helper()
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("%s: %+v", name, s)
	}
}

func TestCompose(t *testing.T) {
	c := compose(t, "compose.yaml")
	gate, trust, crawler := c.Services["gate"], c.Services["trust"], c.Services["crawler"]
	image := dockerfile(t)
	settings := validConfig(t, gatetest.Read(t, "../../deploy/gate/config.yaml"))

	t.Run("the gate is the only way out", func(t *testing.T) {
		wantSame(t, "networks of the crawler", crawler.networks(t), "crawl")
		wantSame(t, "crawl is internal", c.Networks["crawl"].Internal, true)
		wantSame(t, "networks of the gate", gate.networks(t), "crawl outside")
		wantSame(t, "outside is internal", c.Networks["outside"].Internal, false)
		wantSame(t, "network of trust", trust.NetworkMode, "none")
	})
	t.Run("the image is the Dockerfile's", func(t *testing.T) {
		wantSame(t, "image of trust", trust.Image, gate.Image)
		wantSame(t, "pull_policy of trust", trust.PullPolicy, "never")
		if _, err := os.Stat(filepath.Join("../../deploy", gate.Build, "Dockerfile")); err != nil {
			t.Error(err)
		}
		folder := filepath.Dir(execForm(t, final(t, image, "CMD"))[2]) // of its configuration
		for _, mount := range []string{"data:" + final(t, image, "VOLUME"), "./gate:" + folder + ":ro"} {
			if !slices.Contains(gate.Volumes, mount) {
				t.Errorf("the gate does not mount %s: %q", mount, gate.Volumes)
			}
		}
		wantSame(t, "data_dir", settings.DataDir, final(t, image, "VOLUME"))
		uid, gid, _ := strings.Cut(final(t, image, "USER"), ":")
		if want := fmt.Sprintf("install -d -o %s -g %s -m 0755 /trust ", uid, gid); !strings.Contains(gatetest.Read(t, "../../Dockerfile"), want) {
			t.Errorf("the image's user cannot write to the volume trust: the Dockerfile has no %q", want)
		}
	})
	t.Run("docker compose up does not need the crawler's image", func(t *testing.T) {
		wantSame(t, "profiles of the crawler", strings.Join(crawler.Profiles, " "), "crawl")
		wantSame(t, "profiles of the others", len(gate.Profiles)+len(trust.Profiles), 0)
	})
	t.Run("the commands in its comments are valid", func(t *testing.T) {
		for _, m := range regexp.MustCompile(`(?m)exec gate robotsgate (.*)$`).FindAllStringSubmatch(gatetest.Read(t, "../../deploy/compose.yaml"), -1) {
			understood(t, strings.Fields(m[1]))
			if !strings.HasSuffix(m[1], "-c "+execForm(t, final(t, image, "CMD"))[2]) {
				t.Errorf("%q does not name the gate's configuration", m[1])
			}
		}
	})
	t.Run("the gate has time to end, and a health check for which the crawler waits", func(t *testing.T) {
		gate.wantGate(t, settings)
		for name, s := range map[string]string{"gate": "service_healthy", "trust": "service_completed_successfully"} {
			wantSame(t, "the crawler's condition for "+name, crawler.DependsOn[name].Condition, s)
		}
	})
	t.Run("hardened", func(t *testing.T) {
		gate.wantHardened(t, "gate")
		trust.wantHardened(t, "trust")
	})
	t.Run("the crawler has the variables of robotsgate env, and the files of trust", func(t *testing.T) {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "robotsgate", "env")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^export (\w+)='?([^'\n]*)'?$`).FindAllStringSubmatch(string(out), -1) {
			value := strings.Replace(m[2], "127.0.0.1:9309", "gate:9309", 1)
			if strings.HasPrefix(value, dir) {
				value = "/trust/" + filepath.Base(value)
				if !strings.Contains(trust.Command[0], "> "+value+"\n") {
					t.Errorf("trust does not create %s", value)
				}
			}
			want[m[1]] = value
		}
		if len(want) < 10 {
			t.Fatalf("env prints %s", out)
		}
		for name, value := range want {
			wantSame(t, name, crawler.Environment[name], value)
		}
		wantSame(t, "number of variables", len(crawler.Environment), len(want))
		wantSame(t, "shell of trust", strings.Join(trust.Entrypoint, " "), "/bin/sh -euc")
		configuration := filepath.Join(dir, "config.yaml")
		gatetest.Write(t, configuration, "data_dir: data\n")
		made := t.TempDir()
		script := strings.NewReplacer("/etc/robotsgate/config.yaml", configuration, "/trust/", made+"/").Replace(trust.Command[0])
		if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script).CombinedOutput(); err != nil {
			t.Fatalf("trust: %v\n%s", err, out)
		}
		certificate := gatetest.Read(t, filepath.Join(made, "ca.pem"))
		if !strings.HasPrefix(certificate, "-----BEGIN CERTIFICATE-----") || !strings.Contains(gatetest.Read(t, filepath.Join(made, "bundle.pem")), certificate) {
			t.Errorf("trust writes no certificate for crawlers: %s", certificate)
		}
		wantSame(t, "wgetrc", gatetest.Read(t, filepath.Join(made, "wgetrc")), "ca_certificate = "+made+"/bundle.pem\n")
		if !slices.Contains(crawler.Volumes, "trust:/trust:ro") || slices.ContainsFunc(crawler.Volumes, func(v string) bool { return strings.HasPrefix(v, "data") }) {
			t.Errorf("the crawler mounts %q: it needs the certificate and must not have the key", crawler.Volumes)
		}
	})
}

// unit returns the settings of deploy/robotsgate.service. If a name occurs twice, the last one
// counts.
func unit(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(gatetest.Read(t, "../../deploy/robotsgate.service")) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			all[key] = value
		}
	}
	return all
}

func TestService(t *testing.T) {
	s, defaults := unit(t), gate.DefaultConfig()
	start := strings.Fields(s["ExecStart"])
	understood(t, start[1:])
	wantSame(t, "User", s["User"], "robotsgate")
	wantSame(t, "ExecReload", s["ExecReload"], "/bin/kill -HUP $MAINPID")
	stop, err := time.ParseDuration(s["TimeoutStopSec"])
	if err != nil || stop <= shutdownTime(defaults) {
		t.Errorf("TimeoutStopSec is %s, the gate takes up to %v", s["TimeoutStopSec"], shutdownTime(defaults))
	}
	if files, err := strconv.Atoi(s["LimitNOFILE"]); err != nil || files < 2*defaults.Limits.MaxConnections {
		t.Errorf("LimitNOFILE=%s is too low for %d connections", s["LimitNOFILE"], defaults.Limits.MaxConnections)
	}

	// The configuration that docs/deploy.md installs names the directories that the unit may write
	// to, so that commands with the same configuration find them too.
	c := validConfig(t, gatetest.Read(t, "../../deploy/systemd/config.yaml"))
	wantSame(t, "data_dir", c.DataDir, "/var/lib/"+s["StateDirectory"])
	wantSame(t, "directory of log.audit", filepath.Dir(c.Log.Audit.File), "/var/log/"+s["LogsDirectory"])
	wantSame(t, "environment", s["Environment"], "")
	wantSame(t, "EnvironmentFile", s["EnvironmentFile"], "-"+filepath.Dir(start[3])+"/env")

	gatetest.Needs(t, "systemd-analyze")
	program, err := exec.LookPath("robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "robotsgate.service")
	if err := os.WriteFile(file, []byte(strings.Replace(gatetest.Read(t, "../../deploy/robotsgate.service"), start[0], program, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", file).CombinedOutput(); err != nil || bytes.Contains(out, []byte("robotsgate")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
