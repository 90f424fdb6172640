//go:build linux && (amd64 || arm64)

package escapes

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hiddenSockets has ways to see a Unix socket that a mount hides.
var hiddenSockets = []Attempt{
	{Name: "mount-bind", Tries: "bind the folder of a Unix socket elsewhere, in a mount namespace of its own", Needs: []string{"userns"}, try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "bind")
	}},
	{Name: "mount-clone", Tries: "clone the mount of a Unix socket's folder", Needs: []string{"userns"}, try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "bind", "clone")
	}},
	{Name: "mount-recursive", Tries: "bind the folder of a Unix socket with all mounts below it, and remove these", Needs: []string{"userns"}, try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "bind", "recursive")
	}},
	{Name: "mount-unmount", Tries: "remove the mounts that hide a Unix socket", Needs: []string{"userns"}, try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "unmount")
	}},
	{Name: "mount-unmount-root", Tries: "remove the mount over a Unix socket without a new user namespace", Root: true, Needs: []string{"hidden"}, try: func(t *trial) error { return stageUnmount(t, []string{t.At["hidden"]}) }},
	{Name: "mount-overlay", Tries: "see a Unix socket through an overlay", Unproven: "an overlay's sockets are not those below", try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "overlay")
	}},
	{Name: "chroot", Tries: "see a Unix socket from another root folder", Needs: []string{"userns"}, try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "bind", "chroot")
	}},
	{Name: "mount-moved", Tries: "move a Unix socket from under the mount that hides it, in a mount namespace without that mount", Needs: []string{"userns"}, try: func(t *trial) error {
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "moved")
	}},
}

// stageMoved binds an empty folder, moves a socket into it from another mount namespace, and connects through
// the bind mount.
func stageMoved(t *trial, _ []string) error {
	from, base := filepath.Split(t.At["movable"])
	inner, to := filepath.Join(from, "inner"), filepath.Join(t.Dir, "moved")
	if err := errors.Join(os.Mkdir(inner, 0o755), os.Mkdir(to, 0o755)); err != nil {
		return err
	}
	defer os.Remove(inner)
	defer os.Remove(to)
	if err := unix.Mount(inner, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	defer unix.Unmount(to, unix.MNT_DETACH)
	if err := t.stage(unix.CLONE_NEWNS, "move"); err != nil {
		return err
	}
	return t.Send("unix", filepath.Join(to, base), t.Token())
}

// stageMove leaves all mounts of its namespace, and moves the socket.
func stageMove(t *trial, _ []string) error {
	from, base := filepath.Split(t.At["movable"])
	fd, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp(t.Dir, "root")
	if err != nil {
		return err
	}
	for _, err := range []error{
		unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount("tmpfs", root, "tmpfs", 0, ""), os.Chdir(root),
		unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH),
	} {
		if err != nil {
			return fmt.Errorf("leave the mounts: %w", err)
		}
	}
	return unix.Renameat(fd, base, fd, filepath.Join("inner", base))
}

// stageBind connects to a socket in a copy of the mount that its folder is on, without what is
// mounted below it.
func stageBind(t *trial, args []string) error {
	from, base := filepath.Dir(t.At["stream"]), filepath.Base(t.At["stream"])
	flags := uintptr(unix.MS_BIND)
	switch strings.Join(args, "") {
	case "recursive":
		flags |= unix.MS_REC
	case "clone":
		fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("open_tree: %w", err)
		}
		return t.Send("unix", fmt.Sprintf("/proc/self/fd/%d/%s", fd, base), t.Token())
	case "chroot":
		if err := unix.Chroot(from); err != nil {
			return fmt.Errorf("chroot: %w", err)
		}
		return t.Send("unix", "/"+base, t.Token())
	}
	// Another user's mount of the root may not be bound, so try the folders above too.
	to, err := os.MkdirTemp(t.Dir, "bind")
	if err != nil {
		return err
	}
	defer os.Remove(to)
	var errs []error
	for dir := from; ; dir = filepath.Dir(dir) {
		if err := unix.Mount(dir, to, "", flags, ""); err != nil {
			errs = append(errs, fmt.Errorf("bind %s: %w", dir, err))
		} else {
			path := to + strings.TrimPrefix(t.At["stream"], strings.TrimSuffix(dir, "/"))
			_ = unix.Unmount(path, unix.MNT_DETACH)
			errs = append(errs, t.Send("unix", path, t.Token()))
			unix.Unmount(to, unix.MNT_DETACH)
		}
		if dir == "/" {
			return errors.Join(errs...)
		}
	}
}

// stageUnmount removes what is mounted on a socket or anywhere, and connects. Without arguments it
// does this in a namespace of its own.
func stageUnmount(t *trial, only []string) error {
	target := t.At["stream"]
	points := only
	if len(only) == 0 {
		file, err := os.Open("/proc/self/mountinfo")
		if err != nil {
			return err
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 4 {
				points = append(points, fields[4])
			}
		}
	} else {
		target = only[0]
	}
	var errs []error
	for i := len(points) - 1; i >= 0; i-- {
		if strings.HasPrefix(target, points[i]) {
			errs = append(errs, unix.Unmount(points[i], unix.MNT_DETACH))
		}
	}
	return errors.Join(append(errs, t.Send("unix", target, t.Token()))...)
}

// stageOverlay connects to a socket in an overlay file system above its folder.
func stageOverlay(t *trial, _ []string) error {
	to, err := os.MkdirTemp("/var/tmp", "overlay")
	if err != nil {
		return err
	}
	defer os.Remove(to)
	options := "lowerdir=" + filepath.Dir(t.At["stream"]) + ":" + to
	if err := unix.Mount("overlay", to, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	defer unix.Unmount(to, unix.MNT_DETACH)
	return t.Send("unix", filepath.Join(to, filepath.Base(t.At["stream"])), t.Token())
}
