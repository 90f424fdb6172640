package e2e

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"robotsgate/internal/cli"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
)

// An instruction is one of the Dockerfile.
type instruction struct {
	stage     int // 1-based
	name, arg string
}

func dockerfile(t *testing.T) (all []instruction) {
	t.Helper()
	text := gatetest.Read(t, "../../Dockerfile")
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	stage := 0
	for line := range strings.Lines(text) {
		name, arg, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		if name == "FROM" {
			stage++
		}
		all = append(all, instruction{stage, name, strings.TrimSpace(arg)})
	}
	return all
}

// final returns the argument of an instruction of the last stage.
func final(t *testing.T, all []instruction, name string) string {
	t.Helper()
	last := all[len(all)-1].stage
	for _, i := range all {
		if i.stage == last && i.name == name {
			return i.arg
		}
	}
	t.Fatalf("the last stage of the Dockerfile has no %s", name)
	return ""
}

// execForm reads the JSON form of CMD and ENTRYPOINT.
func execForm(t *testing.T, arg string) (words []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(arg), &words); err != nil {
		t.Fatalf("%s: %v", arg, err)
	}
	return words
}

// TestImage checks the Dockerfile without building it.
func TestImage(t *testing.T) {
	all := dockerfile(t)
	t.Run("two stages, built by the Go of go.mod", func(t *testing.T) {
		goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(gatetest.Read(t, "../../go.mod"))[1]
		var from []string
		for _, i := range all {
			if i.name == "FROM" {
				from = append(from, i.arg)
			}
		}
		if len(from) != 2 || from[0] != "golang:"+goVersion+" AS build" || !strings.HasPrefix(from[1], "alpine:") {
			t.Errorf("got stages %q, want golang:%s and alpine", from, goVersion)
		}
	})
	t.Run("not root", func(t *testing.T) {
		if user := final(t, all, "USER"); !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
			t.Errorf("USER is %s, want the numbers of a user and a group other than root", user)
		}
	})
	t.Run("its configuration is valid, and keeps data in the volume", func(t *testing.T) {
		c := imageConfig(t, all)
		if got := final(t, all, "VOLUME"); got != c.DataDir {
			t.Errorf("VOLUME is %s, data_dir %s", got, c.DataDir)
		}
		if c.Listen != "0.0.0.0:9309" {
			t.Errorf("listen is %s, want 0.0.0.0:9309", c.Listen)
		}
		if got := final(t, all, "EXPOSE"); got != "9309 9310" {
			t.Errorf("EXPOSE is %s, want 9309 9310", got)
		}
		if want := "http://" + c.Admin.Listen + "/healthz"; !strings.Contains(final(t, all, "HEALTHCHECK"), want) {
			t.Errorf("HEALTHCHECK does not request %s", want)
		}
	})
	t.Run("it starts an existing command", func(t *testing.T) {
		entry := execForm(t, final(t, all, "ENTRYPOINT"))
		for _, i := range all {
			if i.name == "COPY" && strings.HasPrefix(i.arg, "--from=build ") && !strings.HasSuffix(i.arg, " "+entry[0]) {
				t.Errorf("ENTRYPOINT is %s, but the binary is copied elsewhere: COPY %s", entry[0], i.arg)
			}
		}
		parser, err := kong.New(&cli.Commands{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(execForm(t, final(t, all, "CMD"))); err != nil {
			t.Error(err)
		}
	})
}

// imageConfig loads the configuration that a COPY of the last stage takes from the source.
func imageConfig(t *testing.T, all []instruction) *gate.Config {
	t.Helper()
	for _, i := range all {
		file, ok := strings.CutSuffix(i.arg, " /etc/robotsgate/config.yaml")
		if i.name != "COPY" || !ok {
			continue
		}
		c, err := gate.LoadConfig(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Fatal("the Dockerfile copies no configuration")
	return nil
}

// TestStaticBinary builds the program as the Dockerfile does. The binary must run in an image
// without a C library.
func TestStaticBinary(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "robotsgate")
	var build string
	for _, i := range dockerfile(t) {
		if i.name == "RUN" && strings.Contains(i.arg, "go build") {
			build = i.arg
		}
	}
	for _, want := range []string{"CGO_ENABLED=0 ", " -trimpath ", " -o /robotsgate "} {
		if !strings.Contains(build, want) {
			t.Fatalf("the Dockerfile builds with %q, without %q", build, want)
		}
	}
	cmd := exec.Command("sh", "-c", strings.Replace(build, "/robotsgate", binary, 1))
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
	if runtime.GOOS != "linux" {
		return
	}
	if out, err := exec.Command(binary, "version").Output(); err != nil || !strings.HasPrefix(string(out), "robotsgate ") {
		t.Errorf("version: %q, %v", out, err)
	}
}
