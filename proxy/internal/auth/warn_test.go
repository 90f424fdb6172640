package auth

import (
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A flood of failed logins is one line a minute, which counts them.
func TestFailedLoginsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		log := slog.New(slog.NewTextHandler(&said, nil))
		var f FailedLogins
		for i := range 1000 {
			f.Report(log, "failed", netip.MustParseAddr("192.0.2.1"), "number", i)
		}
		time.Sleep(time.Minute) // fake clock
		f.Report(log, "failed", netip.MustParseAddr("192.0.2.2"))
		lines := strings.Split(said.String(), "\n")
		if len(lines) != 3 || !strings.HasSuffix(lines[0], "client=192.0.2.1 number=0 others_since_last=0") || !strings.HasSuffix(lines[1], "client=192.0.2.2 others_since_last=999") {
			t.Errorf("logged %q", lines)
		}
	})
}

// While the log blocks, other requests with a failed login do not wait.
func TestFailedLoginsDoNotWaitForTheLog(t *testing.T) {
	log := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	var f FailedLogins
	var both sync.WaitGroup
	defer both.Wait()
	defer close(log.release)
	report := func() {
		f.Report(slog.New(slog.NewTextHandler(log, nil)), "failed", netip.MustParseAddr("192.0.2.1"))
	}
	both.Go(report)
	<-log.entered
	second := make(chan struct{})
	both.Go(func() { report(); close(second) })
	select {
	case <-second:
	case <-time.After(10 * time.Second):
		t.Error("the second failed login waits for the log")
	}
}

// A stuck log blocks until it is released.
type stuck struct{ entered, release chan struct{} }

func (s *stuck) Write(p []byte) (int, error) {
	close(s.entered)
	<-s.release
	return len(p), nil
}
