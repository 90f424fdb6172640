// Package builds robotsgate for every platform: archives, .deb and .rpm, the image as an OCI archive, and their checksums.
//
//	go run -C tools/package .                     into dist/
//	go run -C tools/package . -o /tmp/packages    into another directory
//
// The same commit and the same version of Go give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// exe is the name of the binary.
func (p platform) exe() string {
	if p.os == "windows" {
		return "robotsgate.exe"
	}
	return "robotsgate"
}

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// A release is what is built, and where.
type release struct {
	root    string // of the source
	out     string
	stage   string // the files that go into archives and packages
	version string
	commit  string
	time    time.Time // of the commit; every file in archives and packages has it
	images  []v1.Image
}

func main() {
	out := flag.String("o", "dist", "directory for the files; relative to the root of the source")
	version := flag.String("version", "", "version, such as 1.2.3; if left out, that of the tag, or of the commits since it")
	only := flag.String("platform", "", "build for this platform only, such as linux/amd64")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "package: unexpected argument %q; -help lists the options\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*out, *version, *only); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(out, version, only string) error {
	targets := slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return only != "" && only != p.String() })
	if len(targets) == 0 {
		return fmt.Errorf("-platform %s: the platforms are %v", only, platforms)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "tools/package/nfpm.yaml")); err != nil {
		return errors.New("not in tools/package of the source: start it with `go run -C tools/package .`")
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	stage, err := os.MkdirTemp("", "robotsgate-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	r := release{root: root, out: out, stage: stage}
	if err := r.identify(version); err != nil {
		return err
	}
	fmt.Println("version", r.version)
	return r.build(targets)
}

func (r *release) build(targets []platform) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	fmt.Println("compiling for this machine; manual page, completion, licences and documentation")
	if err := r.stageFiles(); err != nil {
		return err
	}
	var files []string
	for i, p := range targets {
		fmt.Printf("[%d/%d] %v\n", i+1, len(targets), p)
		made, err := r.buildPlatform(p)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		files = append(files, made...)
	}
	if len(r.images) > 0 {
		name, err := r.writeImages()
		if err != nil {
			return fmt.Errorf("image: %w", err)
		}
		files = append(files, name)
	}
	if err := r.writeSums(files); err != nil {
		return err
	}
	fmt.Printf("%d files and SHA256SUMS are in %s\n", len(files), r.out)
	return nil
}

// buildPlatform builds the binary and everything that contains it, and returns the files' names.
func (r *release) buildPlatform(p platform) (files []string, err error) {
	if err := r.compile(p); err != nil {
		return nil, err
	}
	defer os.Remove(filepath.Join(r.stage, p.exe()))
	archive, err := r.archive(p)
	if err != nil || p.os != "linux" {
		return []string{archive}, err
	}
	packages, err := r.packages(p)
	if err != nil {
		return nil, err
	}
	image, err := r.image(p)
	r.images = append(r.images, image)
	return append(packages, archive), err
}
