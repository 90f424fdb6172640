package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
)

// TestBusy: a gate that reads too many large files does not blame the origin.
func TestBusy(t *testing.T) {
	p := failure(fmt.Errorf("fetch: %w", snapshot.ErrBusy), &inbound{}, nil)
	if p.status != 503 || p.fault != "proxy_internal_response" || !strings.Contains(p.title, "large robots.txt") || strings.Contains(p.detail, "origin could") {
		t.Errorf("got %+v", p)
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
