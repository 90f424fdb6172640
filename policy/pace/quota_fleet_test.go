package pace_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"robotsgate/internal/fleet"
	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/pace"
)

// inFleet returns the pacer of a gate that shares a store, when it is connected.
func inFleet(t *testing.T, id string, store *gatetest.RedisServer) (*pace.Pacer, *fleet.Fleet) {
	t.Helper()
	config := fleet.Default()
	config.Address, config.Timeout = fleet.Address(store.Address()), 5*time.Second
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	f, err := fleet.Open(fleet.Options{Key: bytes.Repeat([]byte("k"), fleet.MinKey), Log: log, Gate: id, Settings: fleet.Settings{Config: config}})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: http.DefaultTransport, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	p := pace.New(pace.Config{MaxQueue: 10}, f.Clock())
	pace.WithQuota(p)
	f.Start(engine.Snapshots(), p.Recent)
	t.Cleanup(func() {
		p.Close()
		engine.Close()
		f.Close()
	})
	gatetest.Becomes(t, time.Minute, "the gate is connected", func() bool {
		_, err := f.Clock().Reserve(pace.Reservation{Key: "a probe", Since: -1, Longest: -1})
		return err == nil
	})
	return p, f
}

// take sends requests to different origins of a host, and returns how many start, and what is left then.
func take(t *testing.T, p *pace.Pacer, most int) (started, left int) {
	t.Helper()
	for i := range most {
		turn, err := p.Wait(t.Context(), pace.Request{Origin: []string{"http://shop.example:80", "https://shop.example:443"}[i%2], Crawler: "news"})
		if late, ok := errors.AsType[*pace.TooLate](err); ok && late.By == "quota" && late.After > 50*time.Minute {
			return started, 0
		}
		if err != nil {
			t.Fatal(err)
		}
		turn.Done(pace.Answer{Status: 200})
		started, left = started+1, turn.Allowances[0].Left
	}
	return started, left
}

// TestQuotaFleet: gates with a real store share the rule that only tests have, of 100 starts an hour. A gate that is
// started again goes on with what the store knows. While the store is away each gate permits its part.
func TestQuotaFleet(t *testing.T) {
	store := gatetest.Redis(t)
	a, first := inFleet(t, "gate-a", store)
	b, second := inFleet(t, "gate-b", store)
	gatetest.Becomes(t, time.Minute, "both gates see each other", func() bool {
		return len(first.Status().Gates) == 2 && len(second.Status().Gates) == 2
	})
	calls := first.Status().Calls
	if started, left := take(t, a, 40); started != 40 || left != 60 {
		t.Errorf("gate a: %d started, %d left", started, left)
	}
	if n := first.Status().Calls - calls; n < 40 || n > 45 { // and announcements
		t.Errorf("40 starts have cost %d calls", n)
	}
	if started, left := take(t, b, 30); started != 30 || left != 30 {
		t.Errorf("gate b: %d started, %d left", started, left)
	}
	again, _ := inFleet(t, "gate-c", store)
	if started, left := take(t, again, 10); started != 10 || left != 20 {
		t.Errorf("a new gate: %d started, %d left", started, left)
	}
	store.Kill()
	gatetest.Becomes(t, time.Minute, "gate b has lost the store", func() bool {
		return second.Status().State == fleet.Away
	})
	n := len(second.Status().Gates)
	if started, _ := take(t, b, 100); started != max(100/n-30, 0) {
		t.Errorf("%d gates, alone: %d started beside 30", n, started)
	}
}
