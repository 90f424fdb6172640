package fleet

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/pace"
)

// TestMissingRight: while the store's user lacks the right to a command, the store stays away, although the script that
// announces the gate runs. The log says so once.
func TestMissingRight(t *testing.T) {
	t.Parallel() // it waits most of the time
	process := gatetest.Redis(t)
	user := addUser(process, Rights("robotsgate"))
	log, own := new(gatetest.Output), newLocalStore()
	o := Options{Key: testKey, Local: own, Log: slog.New(slog.NewTextHandler(log, nil)), Gate: "one", Settings: Settings{Config: Default()}}
	o.Address = Address("redis://" + user + process.HostPort())
	o.Timeout = 5 * time.Second
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: newWeb(), Store: f, Shared: true, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer engine.Close()
	f.Start(engine.Snapshots(), func() []pace.Reservation { return nil })
	becomes := func(state string) {
		t.Helper()
		gatetest.Becomes(t, 20*time.Second, state, func() bool { return f.Status().State == state })
	}
	becomes(Connected)
	process.Command("ACL", "SETUSER", "gate", "-xrange", "-xadd", "-xrevrange")
	becomes(Away)
	failed := func() string { // the gate's tries, as Redis counts them

		return regexp.MustCompile(`cmdstat_evalsha:\S*failed_calls=(\d+)`).FindString(process.Command("INFO", "commandstats"))
	}
	for range 3 {
		before := failed()
		gatetest.Becomes(t, 20*time.Second, "another try", func() bool { return failed() != before })
		if s := f.Status(); s.State != Away || !strings.Contains(s.Error, "NOPERM") {
			t.Errorf("after another try: %s, %s", s.State, s.Error)
		}
	}
	if got := log.String(); strings.Count(got, "is away") != 1 || strings.Count(got, "connected to") != 1 {
		t.Errorf("the log has\n%s", got)
	}
	addUser(process, Rights("robotsgate"))
	becomes(Connected)
}
