//go:build linux && (amd64 || arm64)

package escapes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// listenUnix starts the targets with Unix sockets.
func (o *Outside) listenUnix() error {
	w := &o.World
	for name, kind := range map[string]string{
		"seqpacket": "unixpacket", "swapped": "unix",
		"docker": "unix", "dbus": "unix", "systemd": "unix", "wayland": "unix", "ssh-agent": "unix", "gpg-agent": "unix", "tmux": "unix", "syslog": "unixgram",
	} {
		if err := o.listenPath(name, kind, filepath.Join(w.Dir, name+".sock")); err != nil {
			return err
		}
	}
	for name, kind := range map[string]string{
		"abstract seqpacket": "unixpacket", "abstract dbus": "unix",
	} {
		if err := o.listenPath(name, kind, "@"+w.Run+"/"+name); err != nil {
			return err
		}
	}
	o.Missing("x11", o.listenX11())
	if err := o.listenPath("abstract x11", "unix", "@/tmp/.X11-unix/X"+w.Run); err != nil {
		return err
	}
	for _, prepare := range []func() error{o.listenFolder, o.listenClosed, o.listenMoved, o.listenShort, o.hide} {
		if err := prepare(); err != nil {
			return err
		}
	}
	return nil
}

// listenX11 starts a target where X servers have theirs.
func (o *Outside) listenX11() error {
	const dir = "/tmp/.X11-unix"
	if err := os.Mkdir(dir, 0o777); err == nil {
		o.OnClose(func() { os.Remove(dir) })
		if err := os.Chmod(dir, 0o1777); err != nil {
			return err
		}
	}
	path := dir + "/X" + o.World.Run
	o.OnClose(func() { os.Remove(path) })
	return o.listenPath("x11", "unix", path)
}

// listenFolder starts two targets, each in a folder of its own.
func (o *Outside) listenFolder() error {
	for _, name := range []string{"folder", "movable"} {
		folder := filepath.Join(o.World.Dir, name)
		if err := os.Mkdir(folder, 0o777); err != nil {
			return err
		}
		if err := o.release(folder); err != nil {
			return err
		}
		if err := o.listenPath(name, "unix", filepath.Join(folder, "s.sock")); err != nil {
			return err
		}
	}
	return nil
}

// listenClosed starts a target in a folder that only its owner can open again.
func (o *Outside) listenClosed() error {
	folder := filepath.Join(o.World.Dir, "closed")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := o.listenPath("closed", "unix", filepath.Join(folder, "s.sock")); err != nil {
		return err
	}
	o.OnClose(func() { _ = os.Chmod(folder, 0o700) })
	if err := os.Chmod(folder, 0); err != nil {
		return err
	}
	return o.release(folder)
}

// listenMoved starts targets that have another name than the one to which they were bound, in a folder where
// sockets are not usual.
func (o *Outside) listenMoved() error {
	dir := filepath.Dir(o.World.At["renamed"])
	bound, now := filepath.Join(dir, "linked.bound"), filepath.Join(dir, "linked.now")
	if err := errors.Join(o.listenPath("linked", "unix", bound), os.Link(bound, now)); err != nil {
		return err
	}
	o.World.At["linked"] = now
	// A relative path is bound from a descriptor's folder, since the working folder belongs to the process.
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := o.listenPath("relative", "unix", fmt.Sprintf("/proc/self/fd/%d/relative", fd)); err != nil {
		return err
	}
	o.World.At["relative"] = filepath.Join(dir, "relative")
	return nil
}

// listenShort starts a target in the working folder of the stand-in, with a path that fits into an
// address behind /proc/PID/root.
func (o *Outside) listenShort() error {
	return o.listenPath("short", "unix", filepath.Join(o.World.Dir, "s"))
}

// hide starts a target with another file mounted on it.
func (o *Outside) hide() error {
	path := filepath.Join(filepath.Dir(o.World.At["renamed"]), "hidden.sock")
	if err := o.listenPath("hidden", "unix", path); err != nil {
		return err
	}
	if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	o.OnClose(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return nil
}
