package store_test

import (
	"log/slog"
	"testing"
	"time"

	"robotsgate/internal/store"
	"robotsgate/internal/store/storetest"
	"robotsgate/policy"
)

func TestDiskIsAStore(t *testing.T) {
	storetest.Test(t, func(t *testing.T) policy.Store {
		d, err := store.Open(t.TempDir(), store.Limits{Keep: time.Hour, Bytes: 1 << 30}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	})
}

func TestMemoryIsAStore(t *testing.T) {
	storetest.Test(t, func(*testing.T) policy.Store { return store.NewMemory(1 << 20) })
}
