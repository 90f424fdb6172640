package gate

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/ca"
)

// A sharedLog is a log that can be read while it is written.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *sharedLog) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *sharedLog) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// TestLogWarnings: in the last month of its CA, a gate logs once a day that it expires.
func TestLogWarnings(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, err := ca.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var log sharedLog
		ctx, cancel := context.WithCancel(t.Context())
		go logWarnings(ctx, a, slog.New(slog.NewTextHandler(&log, nil)))
		lines := func() int { return strings.Count(log.String(), "robotsgate ca --renew") }

		time.Sleep(time.Until(a.Certificate().NotAfter) - 30*24*time.Hour - time.Minute) // fake clock
		synctest.Wait()
		if n := lines(); n != 0 {
			t.Errorf("%d reminders more than 30 days before the end: %s", n, log.String())
		}
		time.Sleep(11 * 24 * time.Hour) // fake clock
		synctest.Wait()
		if n := lines(); n != 10 {
			t.Errorf("%d reminders in the ten days after: %s", n, log.String())
		}
		cancel()
		synctest.Wait() // and it ends, or the bubble fails
	})
}
