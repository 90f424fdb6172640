// Package bench measures the cost of the gate, as ratios to a forwarder that does
// nothing else. Both take turns in one run, since machines differ and are shared.
//
//	go test -run '^$' -bench . ./internal/bench
//
// ROBOTSGATE_BENCH_PROFILE=FILE writes a CPU profile of the gate to an absolute path. BenchmarkBroad
// has a longer form with ROBOTSGATE_BENCH_MILLION=1.
// ROBOTSGATE_BENCH_OTHER=FILE lets another program of the gate take turns in it, such as one from before a change.
//
// It starts processes on loopback: an origin, a bare forwarder, a plain goproxy, and
// the gate as users run it, with everything on. All code is in the tests. The origin
// needs every address of 127.0.0.0/8, which Linux has.
package bench
