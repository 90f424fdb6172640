// Package bench measures what the gate costs: as ratios to a forwarder that does
// nothing, taken in turn in one run, since machines are shared and differ.
//
//	go test -run '^$' -bench . ./internal/bench
//
// default.pgo, by which the compiler inlines what is called most, is made by the same load:
//
//	ROBOTSGATE_BENCH_PROFILE=$PWD/default.pgo go test -trimpath -run '^$' -bench 'Gate$' ./internal/bench
//
// It starts everything as processes of its own on loopback: an origin, a bare
// forwarder, a plain goproxy, and the gate as users run it, with everything on. All of
// it is in the tests; the package is empty. The origin needs every address of 127.0.0.0/8,
// which Linux has.
package bench
