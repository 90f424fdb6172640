package auth

import (
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// While the log blocks, other requests with a wrong login do not wait.
func TestWrongLoginsDoNotWaitForTheLog(t *testing.T) {
	log := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	var w WrongLogins
	var both sync.WaitGroup
	defer both.Wait()
	defer close(log.release)
	report := func() {
		w.Report(netip.MustParseAddr("192.0.2.1"), "news", true, slog.New(slog.NewTextHandler(log, nil)))
	}
	both.Go(report)
	<-log.entered
	second := make(chan struct{})
	both.Go(func() { report(); close(second) })
	select {
	case <-second:
	case <-time.After(10 * time.Second):
		t.Error("the second wrong login waits for the log")
	}
}

// A stuck log blocks until it is released.
type stuck struct{ entered, release chan struct{} }

func (s *stuck) Write(p []byte) (int, error) {
	close(s.entered)
	<-s.release
	return len(p), nil
}
