package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"

	"robotsgate/internal/cli"
)

// roleKey names what this test binary is to be, where it is not to test.
const roleKey = "ROBOTSGATE_BENCH_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleKey)
	if role == "" {
		os.Exit(m.Run())
	}
	var err error
	switch role {
	case "origin":
		err = serveOrigin(os.Args[1])
	case "forwarder":
		err = serveForwarder(os.Args[1])
	case "goproxy":
		err = serveGoproxy(os.Args[1])
	case "gate":
		err = serveGate(os.Args[1], os.Getenv(profileKey))
	default:
		err = fmt.Errorf("no such role")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
}

// serveGate serves until it is interrupted, with a CPU profile of all that time.
func serveGate(config, profile string) error {
	f, err := os.Create(profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	gate := cli.Serve{Configured: cli.Configured{Config: config}}
	err = gate.Run(context.Background(), cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}
