package logtext

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Minute
		for i, step := range []struct {
			wait time.Duration
			want int
		}{
			{0, 1},
			{0, 0},
			{time.Minute - 1, 0},
			{1, 3},
			{time.Minute - 1, 0},
			{time.Hour, 2},
		} {
			time.Sleep(step.wait) // fake clock
			if got := m.Add(); got != step.want {
				t.Errorf("event %d: got %d, want %d", i, got, step.want)
			}
		}
	})
}

// TestConcurrent: of events at one time, one is logged.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Minute
		var lines atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if m.Add() > 0 {
					lines.Add(1)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute) // fake clock
		if got := m.Add(); lines.Load() != 1 || got != 50 {
			t.Errorf("%d lines, and then one of %d events; want 1 and 50", lines.Load(), got)
		}
	})
}
