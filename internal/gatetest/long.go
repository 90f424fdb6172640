package gatetest

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// LongTests reports whether long tests run too, which ROBOTSGATE_LONG=1 asks for.
func LongTests() bool { return os.Getenv("ROBOTSGATE_LONG") == "1" }

// Parallel lets six tests run at once, unless -parallel says another number: they wait most of the time. A TestMain
// calls it.
func Parallel() {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
}

// Long skips a test that takes long, unless ROBOTSGATE_LONG=1.
func Long(t testing.TB) {
	t.Helper()
	if !LongTests() {
		t.Skip("this test takes long: run it with ROBOTSGATE_LONG=1")
	}
}

// Needs skips a test that needs a program which is not on the PATH. .ci/run and .ci/long fail if a program is missing
// that they install.
func Needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

// Size returns how much a test does: less in a plain run and under the race detector, more
// with ROBOTSGATE_LONG=1.
func Size[T any](less, more T) T {
	if LongTests() && !RaceDetector {
		return more
	}
	return less
}

// Rounds returns how often a test that computes in one goroutine does so: n times, but an eighth of that under the
// race detector, which finds nothing there and makes it ten times as slow. .ci/run runs such tests without it too.
func Rounds(n int) int {
	if RaceDetector {
		return n / 8
	}
	return n
}

// Seed returns the seed of a test's random values, and logs how to repeat the test:
// ROBOTSGATE_SEED sets it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("ROBOTSGATE_SEED"), fmt.Sprint(rand.Uint64())), 10, 64)
	if err != nil {
		t.Fatalf("ROBOTSGATE_SEED: %v", err)
	}
	t.Logf("to repeat: ROBOTSGATE_SEED=%d", seed)
	return seed
}

// Random returns random values for the goroutines of a test, from its [Seed].
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(&lockedSource{source: rand.NewPCG(Seed(t), 0)})
}

type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}
