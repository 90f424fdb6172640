package proxy

import (
	"fmt"
	"net/http"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/memory"
)

// A request that the gate has no room to decide about is not the origin's fault.
func TestBusy(t *testing.T) {
	for kind, err := range map[string]error{"robots-busy": snapshot.ErrBusy, "decisions-busy": policy.ErrCostly, "too-many-requests": memory.ErrLimit} {
		x := &exchange{out: &recorder{}}
		p := failure(x, fmt.Errorf("fetch: %w", err))
		if p.status != http.StatusServiceUnavailable || p.retry <= 0 || p.kind != kind || p.refused != ByLimit {
			t.Errorf("%s: got %+v", kind, p)
		}
	}
}
