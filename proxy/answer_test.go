package proxy

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/memory"
)

// A request that the gate has no room to decide about is not the origin's fault.
func TestBusy(t *testing.T) {
	for kind, err := range map[string]error{"robots-busy": snapshot.ErrBusy, "too-many-requests": memory.ErrLimit} {
		p := failure(fmt.Errorf("fetch: %w", err), &inbound{}, nil)
		if p.status != http.StatusServiceUnavailable || p.retry <= 0 || p.kind != kind || p.refused != ByLimit {
			t.Errorf("%s: got %+v", kind, p)
		}
	}
}

// Seconds are written without the noise of binary fractions.
func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{1985 * time.Millisecond: "1.985", 90 * time.Second: "90", 7349400 * time.Microsecond: "7.349", 0: "0"} {
		if got := seconds(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
