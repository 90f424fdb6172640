package proxy

import (
	"runtime"
	"testing"
)

// BenchmarkGrowStack has goroutines call as deep as a request does, with and without
// room made before.
func BenchmarkGrowStack(b *testing.B) {
	for name, grow := range map[string]func(){"before": growStack, "meanwhile": func() {}} {
		b.Run(name, func(b *testing.B) {
			done := make(chan bool)
			for b.Loop() {
				go func() {
					grow()
					deep(14)
					done <- true
				}()
				<-done
			}
		})
	}
}

//go:noinline
func deep(n int) {
	var locals [40]*int // pointers, as most have
	locals[n] = &n
	if n > 0 {
		deep(n - 1)
	}
	runtime.KeepAlive(&locals)
}

func TestGrowStackAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(10, growStack); n != 0 {
		t.Errorf("%v allocations, want the room on the stack", n)
	}
}
