package fleet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// checkOptions are the options of a gate with its store at an address.
func checkOptions(address string) Options {
	return Options{Key: bytes.Repeat([]byte("k"), MinKey), Settings: Settings{Config: Config{Address: Address(address), Prefix: "robotsgate", Timeout: time.Second}}}
}

// report returns one line for each finding.
func report(all []Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s %s %s %v\n", f.Subject, f.Verdict, f.Text, f.Advice)
	}
	return b.String()
}

func wantFindings(t *testing.T, all []Finding, want ...string) {
	t.Helper()
	got := report(all)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is missing in\n%s", w, got)
		}
	}
	if strings.Contains(got, "s3cret") {
		t.Errorf("the password is in\n%s", got)
	}
}

// TestCheck: a store that can be used, with other gates and without.
func TestCheck(t *testing.T) {
	s := newRealServer(t)
	o := checkOptions(s.process.Address())
	wantFindings(t, Check(t.Context(), o), "store passed redis://127.0.0.1:", " ms []", "version passed compatible with Redis ", "clock passed 0.0",
		"key passed no other gate", "permissions passed all scripts run")

	announce := func(id string, key []byte) {
		t.Helper()
		sealer, err := newSealer(key, o.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.announce(testContext(t), id, sealer.seal(id, "gate", []byte("{}")), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	announce("one", o.Key)
	wantFindings(t, Check(t.Context(), o), "key passed the same as that of one gate: one")
	announce("two", o.Key)
	wantFindings(t, Check(t.Context(), o), "key passed the same as that of 2 gates: one, two")
	announce("three", bytes.Repeat([]byte("x"), MinKey))
	wantFindings(t, Check(t.Context(), o), "key failed announcements that this key does not authenticate: 1, of 3 [give all gates the same fleet.key_file")
	s.flush()
	s.do(t, "SET", "robotsgate:{fleet}:g", "x")
	wantFindings(t, Check(t.Context(), o), "key passed no other gate", "permissions passed")
}

// TestCheckLeavesNothing: what Check writes ends soon, and no gate reads it.
func TestCheckLeavesNothing(t *testing.T) {
	s := newRealServer(t)
	Check(t.Context(), checkOptions(s.process.Address()))
	gates, _, err := s.announce(testContext(t), "one", []byte("x"), time.Minute)
	if err != nil || len(gates) != 1 {
		t.Errorf("gates: %v, %v", gates, err)
	}
	if notices, last, err := s.notices(testContext(t), firstNotice); err != nil || len(notices) > 0 || last != "0-0" {
		t.Errorf("notices: %v, %s, %v", notices, last, err)
	}
}

// TestCheckRights: with the rights that Rights returns all scripts run; without one of them some do not, and
// the advice has them all.
func TestCheckRights(t *testing.T) {
	s := newRealServer(t)
	o := checkOptions(strings.Replace(s.process.Address(), "://", "://gate:s3cret@", 1))
	grant := func(rights string) {
		s.do(t, "ACL", append([]string{"SETUSER", "gate", "reset", "on", ">s3cret"}, strings.Fields(rights)...)...)
	}
	grant(Rights("robotsgate"))
	for _, f := range Check(t.Context(), o) {
		if f.Verdict != Passed {
			t.Errorf("%+v", f)
		}
	}
	for command := range strings.FieldsSeq(rights) {
		grant(Rights("robotsgate"))
		s.do(t, "SCRIPT", "FLUSH") // so that scripts have to be sent
		grant(strings.Replace(Rights("robotsgate"), command, "", 1))
		if all := Check(t.Context(), o); !strings.Contains(report(all), "ACL SETUSER NAME "+Rights("robotsgate")) {
			t.Errorf("without %s:\n%s", command, report(all))
		}
	}
	database := o
	database.Address += "/1"
	grant(Rights("robotsgate"))
	wantFindings(t, Check(t.Context(), database), "ACL SETUSER NAME "+Rights("robotsgate")+" +select]")
	grant(Rights("other"))
	wantFindings(t, Check(t.Context(), o), "ACL SETUSER NAME "+Rights("robotsgate"))
}

// TestCheckCluster: all checks pass in a Cluster, with the rights that the advice has.
func TestCheckCluster(t *testing.T) {
	gatetest.Long(t)
	cluster := gatetest.Cluster(t)
	var user string
	for _, more := range []string{"", " +cluster|slots +cluster|shards"} {
		for _, node := range cluster.Nodes {
			user = addUser(node, Rights("robotsgate")+more)
		}
		all := Check(t.Context(), checkOptions(strings.Replace(cluster.Address(), "redis://", "redis://"+user, 1)))
		passed := !slices.ContainsFunc(all, func(f Finding) bool { return f.Verdict != Passed })
		if more == "" {
			wantFindings(t, all, "ACL SETUSER NAME "+Rights("robotsgate")+" +cluster|slots +cluster|shards]")
		} else if !passed || len(all) != 5 {
			t.Errorf("%s", report(all))
		}
	}
}

// TestCheckFailures: each kind of failure comes with what to do about it.
func TestCheckFailures(t *testing.T) {
	s := newRealServer(t)
	address := s.process.Address()
	closed := gatetest.Redis(t)
	closed.Kill()
	for name, c := range map[string]struct {
		address string
		setUp   []string
		want    string
	}{
		"no server":      {closed.Address(), nil, "store failed redis://127.0.0.1:"},
		"wrong password": {strings.Replace(address, "://", "://gate:s3cret@", 1), nil, "[check USER:PASSWORD in fleet.address"},
		"read-only":      {address, []string{"CONFIG", "SET", "min-replicas-to-write", "1"}, "[the store has too few replicas"},
		"out of memory":  {address, []string{"CONFIG", "SET", "maxmemory", "1"}, "[raise maxmemory"},
		"a replica":      {address, []string{"REPLICAOF", "127.0.0.1", "1"}, "[the store is a replica"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.setUp != nil {
				s.do(t, c.setUp[0], c.setUp[1:]...)
				defer func() {
					s.do(t, "REPLICAOF", "NO", "ONE")
					s.do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
					s.do(t, "CONFIG", "SET", "maxmemory", "0")
				}()
			}
			wantFindings(t, Check(t.Context(), checkOptions(c.address)), c.want)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if all := Check(ctx, checkOptions(address)); len(all) == 0 || all[0].Verdict == Passed {
		t.Errorf("after an interrupt: %s", report(all))
	}
}

// TestCheckHangs: of a store that takes connections but does not answer, the finding says that.
func TestCheckHangs(t *testing.T) {
	t.Parallel() // it waits for checkTime
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all sync.WaitGroup
	for _, scheme := range []string{"redis", "rediss"} {
		all.Go(func() {
			wantFindings(t, Check(t.Context(), checkOptions(scheme+"://"+l.Addr().String())), "store failed "+scheme+"://"+l.Addr().String()+": no answer within 5s [")
		})
	}
	all.Wait()
}

// TestCheckSlow: an answer that takes long compared with fleet.timeout is a finding.
func TestCheckSlow(t *testing.T) {
	o := checkOptions(newRealServer(t).process.Address())
	o.Timeout = time.Nanosecond
	wantFindings(t, Check(t.Context(), o), "store failed redis://", "; fleet.timeout is 1ns [use a store that is nearer")
}

func TestCheckClock(t *testing.T) {
	for difference, want := range map[time.Duration]string{
		0:                       "clock passed 0.000 s ahead of the store's",
		-time.Second:            "clock passed 1.000 s behind the store's",
		1001 * time.Millisecond: "clock warned 1.001 s ahead of the store's [synchronise the clocks",
		-time.Hour:              "clock failed 3600.000 s behind the store's",
	} {
		wantFindings(t, []Finding{clock(difference)}, want)
	}
	wantFindings(t, []Finding{version("nil")}, "version failed older than Redis 7.0")
}
