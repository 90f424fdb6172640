package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// compile builds the binary for p in the stage directory.
func (r *release) compile(p platform) error {
	const cli = "robotsgate/internal/cli"
	flags := fmt.Sprintf("-s -w -X '%s.releaseVersion=v%s' -X '%s.releaseCommit=%s'", cli, r.version, cli, r.commit)
	file := filepath.Join(r.stage, p.exe())
	if _, err := r.goTool(p, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "."); err != nil {
		return err
	}
	return os.Chmod(file, 0o755) // whatever the umask is
}

// goTool runs the go command for p, and returns what it prints. The variables that could change
// the binary do not come from the environment.
func (r *release) goTool(p platform, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// licences returns the licences of everything that is linked into the binaries: of the modules of
// all platforms, and of Go.
func (r *release) licences() (string, error) {
	var modules []string // each a path, a version and a directory
	for _, p := range platforms {
		out, err := r.goTool(p, "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`, ".")
		if err != nil {
			return "", err
		}
		modules = append(modules, strings.Split(strings.TrimSpace(out), "\n")...)
	}
	goVersion, err := r.goTool(platforms[0], "env", "GOVERSION", "GOROOT")
	if err != nil {
		return "", err
	}
	modules = append(modules, "Go "+strings.Replace(strings.TrimSpace(goVersion), "\n", "\t", 1))
	slices.Sort(modules)
	var all strings.Builder
	for _, m := range slices.Compact(modules) {
		name, dir, ok := strings.Cut(m, "\t")
		if !ok {
			continue // packages of Go itself print an empty line
		}
		texts, err := licenceFiles(dir)
		if err != nil {
			return "", err
		}
		if len(texts) == 0 {
			return "", fmt.Errorf("module %s has no licence in %s: without one it may not be distributed", name, dir)
		}
		for _, text := range texts {
			fmt.Fprintf(&all, "%s\n%s\n\n%s\n\n", strings.Repeat("-", 72), name, strings.TrimSpace(text))
		}
	}
	return all.String(), nil
}

// licenceFiles returns the content of the licences and notices in a directory.
func licenceFiles(dir string) (texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		named := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !e.Type().IsRegular() || !slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE"}, named) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
