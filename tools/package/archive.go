package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// archive writes the archive for p, and returns its name.
func (r *release) archive(p platform) (name string, err error) {
	system := p.os
	if system == "darwin" {
		system = "macos"
	}
	folder := fmt.Sprintf("robotsgate_%s_%s_%s", r.version, system, p.arch)
	write, ending := writeTar, ".tar.gz"
	if p.os == "windows" {
		write, ending = writeZip, ".zip"
	}
	f, err := os.Create(filepath.Join(r.out, folder+ending))
	if err != nil {
		return "", err
	}
	err = write(f, r.stage, folder, r.time)
	return folder + ending, errors.Join(err, f.Close())
}

// files calls add for each file of an archive, in the order of their names.
func files(stage string, add func(name string, mode fs.FileMode, content []byte) error) error {
	return filepath.WalkDir(stage, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(stage, file)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == packaging {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if name == "robotsgate" || name == "robotsgate.exe" {
			mode = 0o755
		}
		return add(filepath.ToSlash(name), mode, content)
	})
}

func writeTar(w io.Writer, stage, folder string, modified time.Time) error {
	z := gzip.NewWriter(w)
	return errors.Join(tarFiles(z, stage, folder+"/", modified), z.Close())
}

// tarFiles writes the files of a directory as a tar file. Their names begin with prefix.
func tarFiles(w io.Writer, dir, prefix string, modified time.Time) error {
	t := tar.NewWriter(w)
	err := files(dir, func(name string, mode fs.FileMode, content []byte) error {
		header := &tar.Header{Name: prefix + name, Mode: int64(mode), Size: int64(len(content)), ModTime: modified, Format: tar.FormatPAX}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		_, err := t.Write(content)
		return err
	})
	return errors.Join(err, t.Close())
}

func writeZip(w io.Writer, stage, folder string, modified time.Time) error {
	z := zip.NewWriter(w)
	err := files(stage, func(name string, mode fs.FileMode, content []byte) error {
		header := &zip.FileHeader{Name: folder + "/" + name, Method: zip.Deflate, Modified: modified}
		header.SetMode(mode)
		f, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return err
	})
	return errors.Join(err, z.Close())
}

// writeSums writes SHA256SUMS, as sha256sum -c reads it.
func (r *release) writeSums(names []string) error {
	var sums strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
