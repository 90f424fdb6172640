//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLostSockets has sockets in a folder where sockets are not usual, by other names than those to
// which they were bound.
func TestLostSockets(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "rg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(path("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	bind := func(name string) {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path(name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
	}
	bind("a")
	bind("b")
	bind("c")
	if err := os.Rename(path("a"), path("renamed")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path("b"), path("other/moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path("c"), path("other/linked")); err != nil {
		t.Fatal(err)
	}
	hidden, err := hostSockets(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"renamed", "other/moved", "c", "other/linked"} {
		if !slices.Contains(hidden, path(name)) {
			t.Errorf("%s is not hidden", name)
		}
	}
	// A destination that --reach names stays visible, by all its names.
	hidden, err = hostSockets([]Reach{{Path: path("c")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c", "other/linked"} {
		if slices.Contains(hidden, path(name)) {
			t.Errorf("%s is hidden, although it is a destination", name)
		}
	}
}

// TestListSocket: a mount may be of a socket, and that is no folder which could not be read.
func TestListSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, _, err := list(path); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("got %v, want %v", err, unix.ENOTDIR)
	}
}

// TestSearchLimit: a socket that was not found in time is an error that names it and its process.
func TestSearchLimit(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	bound, err := boundSockets()
	if err != nil {
		t.Fatal(err)
	}
	bound = slices.DeleteFunc(bound, func(s boundSocket) bool { return s.name != from })
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	h := newHiding(mounts)
	h.limit = 0
	step, is := errors.AsType[*StepError](h.addLost(bound))
	if want := fmt.Sprintf("%q of process %d (confine.test)", from, os.Getpid()); !is || !strings.Contains(step.Step, want) {
		t.Errorf("got %v, want %s in it", step, want)
	}
	h = newHiding(mounts)
	if err := h.addLost(bound); err != nil || !slices.Contains(h.paths, to) {
		t.Errorf("got %q and %v, want %s", h.paths, err, to)
	}
}

// TestBoundSockets compares the kernel's list with what stat and mountinfo say.
func TestBoundSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	accepted, err := l.Accept() // it has the same file, and the kernel lists it from here on
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	bound, err := boundSockets()
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := socketAt(path)
	want := boundSocket{file: kernelFile{newHiding(mounts).mountAt(path).device, uint32(id.inode)}, name: path, user: os.Getuid()}
	var got []boundSocket
	for _, s := range bound {
		if s.name == path {
			s.inode = 0
			got = append(got, s)
		}
	}
	if !slices.Equal(got, []boundSocket{want}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestForeignSockets has sockets that /proc/net/unix would not list if they were of another network
// namespace: in a folder, and mounted in an unusual one.
func TestForeignSockets(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "rg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(path("run/db"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"run/db/s": "unix", "run/db/packets": "unixpacket", "mounted": "unix", "other": "unix"} {
		listener, err := net.ListenUnix(kind, &net.UnixAddr{Name: path(name), Net: kind})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
	}
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path("run/db/datagrams"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	// No process has this one. It may be replaced.
	if err := unix.Mknod(path("run/db/leftover"), unix.S_IFSOCK|0o666, 0); err != nil {
		t.Fatal(err)
	}
	inFolder := []string{path("run/db/datagrams"), path("run/db/packets"), path("run/db/s")}
	h := newHiding(nil)
	h.walk(path("run"))
	slices.Sort(h.paths)
	if !slices.Equal(h.paths, inFolder) {
		t.Errorf("in a folder: got %q, want %q", h.paths, inFolder)
	}
	h = newHiding(nil)
	h.mounts = []mount{
		{device: "8:1", root: "/", point: dir, kind: "ext4"},
		{device: "8:2", root: "/run/docker.sock", point: path("mounted"), kind: "ext4"},
		{device: "8:2", root: "/volumes/db", point: path("run/db"), kind: "ext4"},
	}
	h.addMounted()
	slices.Sort(h.paths)
	if want := append([]string{path("mounted")}, inFolder...); !slices.Equal(h.paths, want) {
		t.Errorf("mounted: got %q, want %q", h.paths, want)
	}
}

// TestFullFolder checks that a folder with more entries than the search reads does not hide the sockets in
// another one.
func TestFullFolder(t *testing.T) {
	full, other := t.TempDir(), t.TempDir()
	for i := range maxEntries {
		if err := os.WriteFile(filepath.Join(full, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(other, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	h := newHiding(nil)
	h.walk(full)
	h.walk(other)
	if !slices.Contains(h.paths, path) {
		t.Errorf("found %v, want %s too", h.paths, path)
	}
}
