package auth

import (
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// A log that blocks keeps nobody else waiting whose login is wrong.
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
		t.Error("the second waits for the first one's line")
	}
}

// stuck is a log that takes nothing before it is released.
type stuck struct{ entered, release chan struct{} }

func (s *stuck) Write(p []byte) (int, error) {
	close(s.entered)
	<-s.release
	return len(p), nil
}
