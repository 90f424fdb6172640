package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"robotsgate/internal/cli"
)

// gateKey names the variable with the configuration file of the gate that the test binary
// runs as, in place of its tests.
const gateKey = "ROBOTSGATE_E2E_CONFIG"

func TestMain(m *testing.M) {
	config := os.Getenv(gateKey)
	if config == "" {
		os.Exit(m.Run())
	}
	gate := cli.Serve{Configured: cli.Configured{Config: config}}
	if err := gate.Run(context.Background(), cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "robotsgate:", err)
		os.Exit(1)
	}
}
