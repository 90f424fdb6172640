package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// Files for packages only are in this directory of the stage directory. Archives have all others.
const packaging = "packaging"

// copied lists the files of the source that archives and packages contain. Directories that match are left out.
var copied = []string{"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "config.yaml", "docs/*.md", "deploy/*.*", "deploy/*/*", "deploy/helm/*/*"}

// stageFiles writes everything but the binaries into the stage directory.
func (r *release) stageFiles() error {
	for _, pattern := range copied {
		if err := r.copy(r.root, pattern, "."); err != nil {
			return err
		}
	}
	return errors.Join(
		r.copy(filepath.Join(r.root, "tools/package"), "scripts/*/*", packaging),
		r.stageLicences(), r.stageUnit(), r.stageGenerated())
}

// copy copies the files that match pattern below the directory from to the same path below to.
func (r *release) copy(from, pattern, to string) error {
	names, err := fs.Glob(os.DirFS(from), pattern)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no %s: the source is not complete", from, pattern)
	}
	for _, name := range names {
		file := filepath.Join(from, filepath.FromSlash(name))
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := r.write(path.Join(to, name), content); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file into the stage directory. Its mode does not depend on the umask.
func (r *release) write(name string, text []byte) error {
	file := filepath.Join(r.stage, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	return os.Chmod(file, 0o644)
}

// stageLicences writes the licences of the modules, and all licences as Debian's copyright file.
func (r *release) stageLicences() error {
	modules, err := r.licences()
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	return errors.Join(
		r.write("LICENSES-OF-MODULES.txt", []byte(modules)),
		r.write(packaging+"/copyright", []byte(string(own)+"\n"+modules)),
	)
}

// stageUnit writes the unit with the path at which packages install the binary.
func (r *release) stageUnit() error {
	unit, err := os.ReadFile(filepath.Join(r.root, "deploy/robotsgate.service"))
	if err != nil {
		return err
	}
	const manual, packaged = "ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/"
	if bytes.Count(unit, []byte(manual)) != 1 {
		return fmt.Errorf("deploy/robotsgate.service has no line %srobotsgate", manual)
	}
	return r.write(packaging+"/robotsgate.service", bytes.Replace(unit, []byte(manual), []byte(packaged), 1))
}

// stageGenerated writes the files that the binary itself prints.
func (r *release) stageGenerated() error {
	host := platform{runtime.GOOS, runtime.GOARCH}
	if err := r.compile(host); err != nil {
		return err
	}
	program := filepath.Join(r.stage, host.exe())
	defer os.Remove(program)
	for file, args := range map[string]string{
		"robotsgate.1":               "man",
		"completion/robotsgate.bash": "completion bash",
		"completion/_robotsgate":     "completion zsh",
		"completion/robotsgate.fish": "completion fish",
	} {
		out, err := exec.Command(program, strings.Fields(args)...).Output()
		if err != nil {
			return fmt.Errorf("robotsgate %s: %w", args, err)
		}
		if err := r.write(file, out); err != nil {
			return err
		}
		if args == "man" {
			if err := r.write(packaging+"/robotsgate.1.gz", compressed(out)); err != nil {
				return err
			}
		}
	}
	return nil
}

func compressed(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text)
	w.Close()
	return b.Bytes()
}
