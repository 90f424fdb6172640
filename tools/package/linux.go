package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages writes the .deb and the .rpm for p, and returns their names. The files that
// nfpm.yaml names are in the stage directory.
func (r *release) packages(p platform) (names []string, err error) {
	if err := os.Chdir(r.stage); err != nil {
		return nil, err
	}
	for _, format := range []string{"deb", "rpm"} {
		name, err := r.packageAs(format, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		names = append(names, name)
	}
	return names, nil
}

func (r *release) packageAs(format string, p platform) (name string, err error) {
	variables := map[string]string{"VERSION": r.version, "ARCH": p.arch}
	c, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "tools/package/nfpm.yaml"), func(name string) string { return variables[name] })
	if err != nil {
		return "", err
	}
	info, err := c.Get(format)
	if err != nil {
		return "", err
	}
	info.MTime = r.time
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	name = packager.ConventionalFileName(info)
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	return name, errors.Join(packager.Package(info, f), f.Close())
}
