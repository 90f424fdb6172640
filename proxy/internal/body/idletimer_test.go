package body

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestIdleTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after time.Duration
		start := time.Now()
		timer := new(IdleTimer)
		timer.Init(time.Minute, func() { after = time.Since(start) })
		wait := func(d time.Duration) {
			time.Sleep(d) // fake clock
			synctest.Wait()
		}
		wait(time.Hour) // it has not been started
		timer.Start()
		wait(50 * time.Second)
		timer.Pause()
		wait(time.Hour)
		timer.Pause() // by another goroutine
		timer.Start()
		wait(time.Hour) // paused once still
		timer.Start()
		wait(50 * time.Second)
		if after != 0 {
			t.Fatalf("fired after %v", after)
		}
		start = start.Add(3*time.Hour + 50*time.Second)
		timer.Shorten(55 * time.Second)
		wait(time.Hour)
		if after != 55*time.Second || !timer.Fired() || !timer.End() {
			t.Errorf("fired after %v, want 55 s", after)
		}
		wait(time.Hour)
		if after != 55*time.Second {
			t.Error("fired twice")
		}

		after = 0
		timer = new(IdleTimer)
		timer.Init(time.Minute, func() { after = 1 })
		if timer.End() {
			t.Error("a timer that was never started counts as used")
		}
		timer.Start()
		wait(time.Hour)
		if after != 0 || timer.Fired() {
			t.Error("fired after End")
		}
	})
}
