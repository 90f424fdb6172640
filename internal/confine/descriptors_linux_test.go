//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeadsOut has standard streams that a command gets, and those that need --keep-fd.
func TestLeadsOut(t *testing.T) {
	opened := func(fd int, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	for _, c := range []struct {
		name string
		fd   int
		want bool
	}{
		{"a file", opened(unix.Open(os.Args[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)), false},
		{"/dev/null", opened(unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)), false},
		{"a closed descriptor", 1 << 20, false},
		{"a Unix socket", opened(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)), false},
		{"a TCP socket", opened(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)), true},
		{"a UDP socket", opened(unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)), true},
		{"a folder", opened(unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)), true},
		{"the path of a folder", opened(unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)), true},
	} {
		if got := leadsOut(c.fd); (got != "") != c.want {
			t.Errorf("%s: got %q, want it to lead out: %v", c.name, got, c.want)
		}
	}
}
