package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// systemctl stands in for the real one: it records its calls, and says that the service is enabled.
const systemctl = `#!/bin/sh
echo "$*" >> /systemctl.log
case "$*" in
*is-enabled*) echo enabled ;;
*is-active*) exit 1 ;;
esac
`

// testSystemd installs, upgrades and removes the packages where systemd seems to run, and compares
// what they make systemctl do.
func testSystemd(t *testing.T, root string, old, upgrade map[string][]byte) {
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "usr/bin/systemctl"), []byte(systemctl))
	if err := os.Chmod(filepath.Join(root, "usr/bin/systemctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	arch := strings.TrimSpace(output(t, "uname", "-m"))
	for _, c := range []struct{ files, command, want string }{
		{"robotsgate_*_" + runtime.GOARCH + ".deb", "chroot ROOT dpkg --install /old", "preset daemon-reload start"},
		{"robotsgate_*_" + runtime.GOARCH + ".deb", "chroot ROOT dpkg --install /new", "daemon-reload restart"},
		{"", "chroot ROOT dpkg --remove robotsgate", "stop daemon-reload"},
		{"", "chroot ROOT dpkg --purge robotsgate", "daemon-reload"},
		{"robotsgate-*." + arch + ".rpm", "rpm --root ROOT --nodeps --install ROOT/old", "daemon-reload preset"},
		{"robotsgate-*." + arch + ".rpm", "rpm --root ROOT --nodeps --upgrade ROOT/new", "daemon-reload try-restart"},
		{"", "rpm --root ROOT --nodeps --erase robotsgate", "disable stop daemon-reload"},
	} {
		if c.files != "" {
			write(t, filepath.Join(root, "old"), find(t, old, c.files))
			write(t, filepath.Join(root, "new"), find(t, upgrade, c.files))
		}
		write(t, filepath.Join(root, "systemctl.log"), nil)
		line := strings.Fields(strings.ReplaceAll(c.command, "ROOT", root))
		output(t, line[0], line[1:]...)
		calls := read(t, root, "systemctl.log")
		if got := verbs(calls); got != c.want {
			t.Errorf("%s: systemctl was told to %q, want %q:\n%s", c.command, got, c.want, calls)
		}
	}
}

// verbs returns what calls of systemctl change, without repetitions.
func verbs(calls string) string {
	var all []string
	for call := range strings.Lines(calls) {
		words := strings.Fields(call)
		verb := words[slices.IndexFunc(words, func(word string) bool { return !strings.HasPrefix(word, "-") })]
		if !strings.HasPrefix(verb, "is-") {
			all = append(all, verb)
		}
	}
	return strings.Join(slices.Compact(all), " ")
}
