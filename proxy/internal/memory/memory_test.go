package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func newClients(n int) (*Budget, []*Client) {
	b, all := &Budget{}, make([]*Client, n)
	for i := range all {
		all[i] = &Client{Budget: b}
	}
	return b, all
}

// takeAll takes pieces until the share is used up, and returns their sum.
func takeAll(m *Client, piece int64, s Share) (sum int64) {
	for m.Take(piece, s) {
		sum += piece
	}
	return sum
}

// One client leaves memory to others, and every further client gets some.
func TestShares(t *testing.T) {
	const piece, limit = 64 << 10, 256 << 20
	for _, c := range []struct {
		share Share
		part  int64
	}{{ForStreams, 2}, {ForProgress, 3}, {ForBuffers, 5}} {
		_, clients := newClients(1)
		if got := takeAll(clients[0], piece, c.share); got > limit/c.part || got < limit/c.part-piece {
			t.Errorf("share %d: one client gets %d bytes, want 1/%d of %d", c.share, got, c.part, limit)
		}
	}
	b, clients := newClients(10)
	var sum int64
	for i, m := range clients { // each gets half of what is left
		got := takeAll(m, piece, ForStreams)
		if sum += got; got < Limit>>(i+1)-piece {
			t.Errorf("client %d gets %d bytes", i, got)
		}
	}
	if sum != b.used.Load() || sum > Limit {
		t.Errorf("%d bytes are given out and %d counted, of %d", sum, b.used.Load(), Limit)
	}
	for _, m := range clients {
		m.Release(m.used)
	}
	if n := b.used.Load(); n != 0 {
		t.Errorf("%d bytes are counted after all were returned", n)
	}
}

// Requests wait in order of arrival, for memory of their own client or of others, until they are canceled or
// their time is up.
func TestAwaitProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, clients := newClients(2)
		m := clients[0]
		taken := takeAll(m, ProgressCost, ForProgress)
		var order []int
		wait := func(ctx context.Context, n int) chan error {
			done := make(chan error, 1)
			go func() {
				err := m.AwaitProgress(ctx, time.Minute)
				if err == nil {
					order = append(order, n)
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second, third := wait(t.Context(), 1), wait(ctx, 2), wait(t.Context(), 3)
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled request: %v", err)
		}
		m.Release(ProgressCost)
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(order) != 1 || order[0] != 1 {
			t.Errorf("requests %v went on, want only 1", order)
		}
		if err := <-third; !errors.Is(err, ErrLimit) {
			t.Errorf("a request that waited too long: %v", err)
		}
		m.Release(taken)

		other := takeAll(clients[1], ProgressCost, ForStreams)
		took := takeAll(m, ProgressCost, ForProgress)
		fourth := wait(t.Context(), 4)
		clients[1].Release(other) // which does not wake m
		if err := <-fourth; err != nil {
			t.Errorf("a request that waited for other clients: %v", err)
		}
		m.Release(took + ProgressCost)
		if n := b.used.Load(); n != 0 || len(m.waiting) != 0 {
			t.Errorf("%d bytes are counted and %d requests wait, want none", n, len(m.waiting))
		}
	})
}

// After a request has ended, a goroutine of it that still runs can't take memory any more.
func TestReservationReleased(t *testing.T) {
	b, clients := newClients(1)
	r := Reservation{Client: clients[0]}
	if !r.Take(1000, ForBuffers) {
		t.Error("there is no memory")
	}
	r.Release()
	if r.Take(1000, ForBuffers) || b.used.Load() != 0 {
		t.Errorf("%d bytes are counted after the end", b.used.Load())
	}
}
