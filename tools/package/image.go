package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image makes the image for p: what the Dockerfile says, but without a shell. The binary is in the stage directory.
func (r *release) image(p platform) (v1.Image, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	c, err := readDockerfile(string(text))
	if err != nil {
		return nil, err
	}
	entries, err := r.imageEntries(c, p)
	if err != nil {
		return nil, err
	}
	files, err := r.tarEntries(entries)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = p.os, p.arch, v1.Time{Time: r.time}, c.config
	file.History = []v1.History{{Created: file.Created, CreatedBy: "tools/package"}}
	file.Config.Labels["org.opencontainers.image.version"] = r.version
	file.Config.Labels["org.opencontainers.image.revision"] = r.commit
	file.Config.Labels["org.opencontainers.image.created"] = r.time.UTC().Format("2006-01-02T15:04:05Z")
	return mutate.ConfigFile(image, file)
}

// imageEntries returns the files and directories of the image for p, in the order of their names.
func (r *release) imageEntries(c content, p platform) ([]entry, error) {
	uid, gid, _ := strings.Cut(c.config.User, ":")
	home := slices.Collect(maps.Keys(c.config.Volumes))[0]
	entries := append(slices.Clone(c.directories),
		entry{name: "etc/passwd", content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nrobotsgate:x:%s:%s::%s:/sbin/nologin\n", uid, gid, home)},
		entry{name: "etc/group", content: fmt.Appendf(nil, "root:x:0:\nrobotsgate:x:%s:\n", gid)},
		entry{name: "etc/ssl/certs/ca-certificates.crt", content: publicRoots()},
		entry{name: "tmp/", mode: 0o1777})
	add := func(to, file string, mode int64) error {
		text, err := os.ReadFile(file)
		entries = append(entries, entry{name: strings.TrimPrefix(to, "/"), mode: mode, content: text})
		return err
	}
	var errs []error
	for to, file := range c.files {
		if file == "" {
			errs = append(errs, add(to, filepath.Join(r.stage, p.exe()), 0o755))
		} else {
			errs = append(errs, add(to, filepath.Join(r.root, file), 0o644))
		}
	}
	for _, name := range []string{"LICENSE", "LICENSES-OF-MODULES.txt"} {
		errs = append(errs, add("/usr/share/doc/robotsgate/"+name, filepath.Join(r.stage, name), 0o644))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// The directories above them.
	known := map[string]bool{}
	for _, e := range entries {
		known[e.name] = true
	}
	for _, e := range slices.Clone(entries) {
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "."; dir = path.Dir(dir) {
			if !known[dir+"/"] {
				known[dir+"/"] = true
				entries = append(entries, entry{name: dir + "/", mode: 0o755})
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries, nil
}

// publicRoots returns the public root CAs that Mozilla trusts without a condition, since a file of certificates cannot
// state one.
func publicRoots() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

// tarEntries returns a tar file of entries. A file without a mode is readable by all users.
func (r *release) tarEntries(entries []entry) ([]byte, error) {
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: cmp.Or(e.mode, 0o644), Uid: e.uid, Gid: e.gid, Size: int64(len(e.content)),
			ModTime: r.time, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return all.Bytes(), err
}

// writeImages writes the images, as an index by platform, as an OCI archive: a tar file with the layout of the OCI image
// specification. It returns the file's name.
func (r *release) writeImages() (name string, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	name = fmt.Sprintf("robotsgate_%s_image", r.version)
	for _, image := range r.images {
		file, err := image.ConfigFile()
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: file.Platform()}})
		if len(r.images) == 1 {
			name += "_" + file.Architecture
		}
	}
	dir, err := os.MkdirTemp("", "robotsgate-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	// The names that podman and Docker give the image that they load. A tag cannot have a +.
	tag := strings.ReplaceAll(r.version, "+", "-")
	names := map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "docker.io/library/robotsgate:" + tag}
	if err := written.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return "", err
	}
	name += ".tar"
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	return name, errors.Join(tarFiles(f, dir, "", r.time), f.Close())
}
