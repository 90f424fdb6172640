package proxy

import (
	"fmt"
	"net/http"
	"testing"

	"robotsgate/policy"
)

// A request that the gate has no room to decide about is not the origin's fault.
func TestBusy(t *testing.T) {
	x := &Exchange{out: &recorder{}}
	p := failure(x, fmt.Errorf("fetch: %w", policy.ErrBusy))
	if p.status != http.StatusServiceUnavailable || p.retry <= 0 || p.kind != "robots-busy" {
		t.Errorf("got %+v", p)
	}
}
