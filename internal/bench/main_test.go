//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"

	"robotsgate/internal/cli"
	"robotsgate/internal/console"
)

// roleKey is the variable that makes this test binary one of the processes.
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

// serveGate serves until it is interrupted. Unless profile is empty it writes a CPU profile to this file.
func serveGate(config, profile string) (err error) {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, f.Close())
		}()
	}
	gate := cli.Serve{Configured: cli.Configured{Config: config}}
	return gate.Run(context.Background(), console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
