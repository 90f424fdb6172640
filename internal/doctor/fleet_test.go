package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/fleet"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
)

// TestCheckFleet: a store that works passes; one that may not be written fails, with what to do.
func TestCheckFleet(t *testing.T) {
	redis := gatetest.Redis(t)
	c := gate.DefaultConfig()
	c.Fleet.Address, c.Fleet.KeyFile = fleet.Address(redis.Address()), filepath.Join(t.TempDir(), "fleet.key")
	if err := os.WriteFile(c.Fleet.KeyFile, make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	verdicts := func() string {
		var all []string
		for _, f := range checkFleet(t.Context(), c) {
			all = append(all, fmt.Sprintf("%s %s", f.subject, f.verdict))
		}
		return strings.Join(all, ", ")
	}
	if got, want := verdicts(), "fleet store ok, fleet key ok, fleet permissions ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	redis.Command("CONFIG", "SET", "min-replicas-to-write", "1")
	if got, want := verdicts(), "fleet store no"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.Fleet.Address = ""
	if got := verdicts(); got != "" {
		t.Errorf("without a fleet: %s", got)
	}
}
