package proxy

import (
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy/internal/response"
)

// BenchmarkStated measures what preferences cost a response that states none.
func BenchmarkStated(b *testing.B) {
	d, seen := statesNothing()
	b.ReportAllocs()
	for b.Loop() {
		stated(d, "/", seen)
	}
}

// TestStatedAllocatesNothing: a response that states nothing costs no memory.
func TestStatedAllocatesNothing(t *testing.T) {
	d, seen := statesNothing()
	if n := testing.AllocsPerRun(100, func() { stated(d, "/", seen) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func statesNothing() (*policy.Decision, *response.Inspection) {
	return &policy.Decision{Allow: true, Crawler: &policy.Crawler{}}, &response.Inspection{Tags: []robotstag.Rule{{Name: "noarchive", Source: "meta", Scope: "robots"}}}
}
