//go:build linux

package e2e

import (
	"testing"

	"golang.org/x/sys/unix"

	"robotsgate/internal/gatetest"
)

// TestSoftLimitRaised: the gate raises its soft limit on open files to the hard limit.
func TestSoftLimitRaised(t *testing.T) {
	var own, its unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	g := gatetest.Serve(t, t.TempDir(), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\n", "sh", "-c", `ulimit -S -n 200 && exec "$0" "$@"`)
	if err := unix.Prlimit(g.PID(), unix.RLIMIT_NOFILE, nil, &its); err != nil {
		t.Fatal(err)
	}
	if its.Cur < own.Max-1 { // Go leaves one of an odd limit unused
		t.Errorf("the gate's limit is %d open files, the hard limit is %d", its.Cur, own.Max)
	}
}
