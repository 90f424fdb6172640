//go:build unix

package e2e

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// An outage is a way in which the store of a fleet fails, and is mended.
//
// A step is a command of [outageRun.step]; one that begins with "loop" is repeated until the store is mended.
type outage struct {
	name     string
	args     []string // of the server
	prepare  []string // before the gates start
	late     bool     // prepare breaks the store: the gates start without it
	login    string   // in fleet.address
	do       []string
	mend     []string
	lasts    time.Duration // default: 2 s
	away     bool          // the gates must notice it; else they may
	rejected bool          // a value must have been rejected
}

var outageCases = []outage{
	{name: "stopped", do: []string{"stop"}, mend: []string{"continue"}, away: true},
	{name: "stopped for long", do: []string{"stop"}, mend: []string{"continue"}, away: true, lasts: 15 * time.Second},
	{name: "stopped again and again", do: []string{"stop", "pass 1s", "continue", "pass 1s", "stop", "pass 1s", "continue", "pass 500ms", "stop"}, mend: []string{"continue"}, away: true},
	{name: "killed", do: []string{"kill"}, mend: []string{"start"}, away: true},
	{name: "killed and started empty at once", do: []string{"kill", "start"}},
	{name: "ended", do: []string{"redis SHUTDOWN NOSAVE"}, mend: []string{"start"}, away: true},
	{name: "restored from an old dump", do: []string{"redis SAVE", "change", "kill", "start"}},
	{name: "not started yet", late: true, prepare: []string{"kill"}, mend: []string{"start"}, away: true},
	{name: "stopped at the start", late: true, prepare: []string{"stop"}, mend: []string{"continue"}, away: true},
	{name: "loading", args: []string{"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"},
		prepare: []string{"fill", "redis SAVE"}, do: []string{"kill", "start"}, mend: []string{"redis CONFIG SET key-load-delay 0"}, away: true},

	{name: "emptied", do: []string{"redis FLUSHALL"}},
	{name: "emptied again and again", do: []string{"loop redis FLUSHALL"}},
	{name: "all keys expire", do: []string{"loop script expire"}},
	{name: "databases swapped", do: []string{"redis SWAPDB 0 1"}, mend: []string{"redis SWAPDB 0 1"}},
	{name: "scripts forgotten", do: []string{"redis SCRIPT FLUSH"}},
	{name: "scripts forgotten again and again", do: []string{"loop redis SCRIPT FLUSH"}},

	{name: "out of memory", do: []string{"redis CONFIG SET maxmemory 1"}, mend: []string{"redis CONFIG SET maxmemory 0"}, away: true},
	{name: "out of memory with eviction", args: []string{"--maxmemory-policy", "allkeys-lru"}, do: []string{"redis CONFIG SET maxmemory 1"}, mend: []string{"redis CONFIG SET maxmemory 0"}},
	{name: "its snapshots fail", args: []string{"--enable-protected-configs", "yes", "--save", "3600 1"}, do: []string{"redis CONFIG SET dir /proc", "redis BGSAVE", "refuses MISCONF"},
		mend: []string{"redis CONFIG SET stop-writes-on-bgsave-error no"}, away: true},
	{name: "a replica", do: []string{"redis REPLICAOF 127.0.0.1 1"}, mend: []string{"redis REPLICAOF NO ONE"}, away: true},
	{name: "a replica that does not serve", args: []string{"--replica-serve-stale-data", "no"}, do: []string{"redis REPLICAOF 127.0.0.1 1"}, mend: []string{"redis REPLICAOF NO ONE"}, away: true},
	{name: "too few replicas", do: []string{"redis CONFIG SET min-replicas-to-write 1"}, mend: []string{"redis CONFIG SET min-replicas-to-write 0"}, away: true},
	{name: "busy with a script", args: []string{"--busy-reply-threshold", "100"}, do: []string{"background script long"}, mend: []string{"answers"}, away: true},
	{name: "busy with an endless script", args: []string{"--busy-reply-threshold", "100"}, do: []string{"background script endless"}, mend: []string{"redis SCRIPT KILL"}, away: true},
	{name: "asleep", args: []string{"--enable-debug-command", "yes"}, do: []string{"background redis DEBUG SLEEP 4"}, mend: []string{"answers"}, away: true},
	{name: "asleep again and again", args: []string{"--enable-debug-command", "yes"}, do: []string{"loop redis DEBUG SLEEP 0.2"}},

	{name: "clients killed", do: []string{"redis CLIENT KILL TYPE normal"}},
	{name: "clients killed again and again", do: []string{"loop redis CLIENT KILL TYPE normal"}},
	{name: "clients paused", do: []string{"background redis CLIENT PAUSE 4000 ALL", "pass 200ms"}, mend: []string{"answers"}, away: true},
	{name: "writing clients paused", do: []string{"background redis CLIENT PAUSE 4000 WRITE", "pass 200ms"}, mend: []string{"answers"}, away: true},
	{name: "too many clients", do: []string{"redis CONFIG SET maxclients 1", "redis CLIENT KILL TYPE normal"}, mend: []string{"redis CONFIG SET maxclients 1000"}, away: true},
	{name: "idle clients closed after a second", do: []string{"redis CONFIG SET timeout 1"}, mend: []string{"redis CONFIG SET timeout 0"}},

	{name: "another password", prepare: []string{"redis CONFIG SET requirepass sesame-1"}, login: ":sesame-1@", do: []string{"redis CONFIG SET requirepass sesame-2", "redis CLIENT KILL TYPE normal"},
		mend: []string{"redis CONFIG SET requirepass sesame-1"}, away: true},
	{name: "a password is needed", do: []string{"redis CONFIG SET requirepass sesame-1", "redis CLIENT KILL TYPE normal"}, mend: []string{"redis CONFIG SET requirepass "}, away: true},
	{name: "a wrong password at the start", late: true, prepare: []string{"redis CONFIG SET requirepass sesame-2"}, login: ":sesame-1@",
		mend: []string{"redis CONFIG SET requirepass sesame-1"}, away: true},
	{name: "the user may not write", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate -@write"}, mend: []string{"user"}, away: true},
	{name: "the user may not run scripts", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate -evalsha -eval"}, mend: []string{"user"}, away: true},
	{name: "the user may not read", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate -hgetall"}, mend: []string{"user"}, away: true},
	{name: "the user may not save", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate -hset"}, mend: []string{"user"}, away: true},
	{name: "the user has no keys", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate resetkeys"}, mend: []string{"user"}, away: true},
	{name: "the user has other keys", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate resetkeys ~other:*"}, mend: []string{"user"}, away: true},
	{name: "the user is off", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL SETUSER gate off", "redis CLIENT KILL USER gate"}, mend: []string{"user"}, away: true},
	{name: "the user is deleted", prepare: []string{"user"}, login: "gate:sesame-1@", do: []string{"redis ACL DELUSER gate"}, mend: []string{"user"}, away: true},

	{name: "cable cut", do: []string{"cut"}, mend: []string{"restore"}, away: true},
	{name: "cable cut again and again", do: []string{"loop cut", "loop restore"}, mend: []string{"restore"}},
	{name: "cable hung", do: []string{"hang"}, mend: []string{"restore"}, away: true},
	{name: "cable hung toward the store", do: []string{"hang-requests"}, mend: []string{"restore"}, away: true},
	{name: "cable hung toward the gates", do: []string{"hang-answers"}, mend: []string{"restore"}, away: true},
	{name: "slow cable", do: []string{"slow 300ms"}, mend: []string{"restore"}, away: true},
	{name: "slow cable within the time-out", do: []string{"slow 10ms"}, mend: []string{"restore"}},

	{name: "an HTTP server", do: []string{"fake http"}, mend: []string{"back"}, away: true},
	{name: "random bytes", do: []string{"fake random"}, mend: []string{"back"}, away: true},
	{name: "a server that says OK to all", do: []string{"fake ok"}, mend: []string{"back"}, away: true},
	{name: "a server that says 1 to all", do: []string{"fake one"}, mend: []string{"back"}, away: true},
	{name: "a server that closes connections", do: []string{"fake closed"}, mend: []string{"back"}, away: true},
	{name: "a server that says nothing", do: []string{"fake silent"}, mend: []string{"back"}, away: true},
	{name: "commands renamed", do: []string{"another --rename-command EVALSHA x --rename-command EVAL y"}, mend: []string{"back"}, away: true},
	{name: "commands that scripts use renamed", do: []string{"another --rename-command HSET x"}, mend: []string{"back"}, away: true},
	{name: "another empty server", do: []string{"another"}, mend: []string{"back"}},

	{name: "keys of another type", do: []string{"script lists"}, rejected: true},
	{name: "keys of another type again and again", do: []string{"loop script lists"}},
	{name: "strings for hashes", do: []string{"script strings"}, rejected: true},
	{name: "values cut short", do: []string{"script short"}, rejected: true},
	{name: "values with changed bytes", do: []string{"script changed"}, rejected: true},
	{name: "values of other keys", do: []string{"script swapped"}, rejected: true},
	{name: "bodies of other keys", do: []string{"script bodies"}, rejected: true},
	{name: "records without bodies", do: []string{"script bodiless"}, rejected: true},
	{name: "values from the future", do: []string{"sealed 2m"}, rejected: true},
	{name: "values from the far future", do: []string{"sealed 876000h"}, rejected: true},
	{name: "values from a clock that is half a minute ahead", do: []string{"sealed 30s"}},
	{name: "values from long ago", do: []string{"sealed -100000h"}},
	{name: "values of 20 MiB", do: []string{"script huge"}},
	{name: "versions that are no numbers", do: []string{"script versions"}},
	{name: "permissions that do not end", do: []string{"script leases"}, lasts: 8 * time.Second},
	{name: "thousands of gates that are none", do: []string{"script gates"}},
	{name: "thousands of notices that are none", do: []string{"script notices"}},
	{name: "another fleet with the same prefix", do: []string{"other fleet"}, rejected: true},
}

// outageScripts are run by the server.
var outageScripts = map[string]string{
	"expire":  `for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('PEXPIRE', k, 1) end`,
	"endless": `while true do end`,
	"long":    `for i = 1, 1500000000 do end`, // some 5 s
	"lists":   `for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', k) redis.call('RPUSH', k, 'x', 'y') end`,
	"strings": `for _, k in ipairs(redis.call('KEYS', '*:s')) do redis.call('SET', k, 'no record') end`,
	"short":   `for _, k in ipairs(redis.call('KEYS', '*:s')) do local r = redis.call('HGET', k, 'r') if r then redis.call('HSET', k, 'r', string.sub(r, 1, -2)) end end`,
	"changed": `for _, k in ipairs(redis.call('KEYS', '*:s')) do local r = redis.call('HGET', k, 'r') ` +
		`if r then redis.call('HSET', k, 'r', string.sub(r, 1, 60) .. string.reverse(string.sub(r, 61))) end end`,
	"swapped":  rotate("'v', 'r', 'b'"),
	"bodies":   rotate("'b'"),
	"bodiless": `for _, k in ipairs(redis.call('KEYS', '*:s')) do redis.call('HDEL', k, 'b') end`,
	"huge":     `for i, k in ipairs(redis.call('KEYS', '*:s')) do if i < 4 then redis.call('HSET', k, 'r', string.rep('x', 20971520), 'b', string.rep('x', 20971520)) end end`,
	"versions": `for i, k in ipairs(redis.call('KEYS', '*:s')) do redis.call('HSET', k, 'v', ({'nan', '-1', '1e300', '9000000000000000', ''})[i % 5 + 1], ` +
		`'f', ({'', '9e99', '9000000000000000', 'x'})[i % 4 + 1]) end`,
	"leases":  `for _, k in ipairs(redis.call('KEYS', '*:s')) do redis.call('DEL', k) redis.call('SET', string.sub(k, 1, -2) .. 'l', '9000000000000000 other') end`,
	"gates":   `local t = redis.call('TIME')[1] .. '000' for i = 1, 5000 do redis.call('HSET', 'robotsgate:{fleet}:g', 'gate' .. i, t .. ' ' .. string.rep('x', 300)) end`,
	"notices": `for i = 1, 5000 do redis.call('XADD', 'robotsgate:{fleet}:n', '*', i % 2 == 0 and 'n' or 'm', string.rep('x', i % 900)) end`,
}

// rotate returns a script that moves fields of records from each key to the next.
func rotate(fields string) string {
	return `local keys, all = redis.call('KEYS', '*:s'), {}
local fields = {` + fields + `}
for i, k in ipairs(keys) do all[i] = redis.call('HMGET', k, unpack(fields)) end
for i, k in ipairs(keys) do for j, f in ipairs(fields) do local value = all[i % #keys + 1][j] if value then redis.call('HSET', k, f, value) end end end`
}

// fakeServers answer what is read from a connection. The text of an endless one is repeated.
var fakeServers = map[string]struct {
	text    string
	endless string
}{
	"http":   {text: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
	"random": {endless: rand.Text() + "\r\n" + rand.Text() + "\x00\xff*$%~-+:\r\n"},
	"ok":     {text: "+OK\r\n"},
	"one":    {text: ":1\r\n"},
	"closed": {},
	"silent": {},
}

// The checks of each outage.
var outageChecks = []string{
	"no request fails", "decisions are those of a lone gate", "known origins are answered in time", "the state is known",
	"back in service within 10 s", "the log names each change once", "values are rejected", "no secret is logged",
}

// TestFleetOutages breaks the store of two gates, in each way that outageCases has, and compares them with a gate
// that is in no fleet.
func TestFleetOutages(t *testing.T) {
	longWithoutRace(t)
	k := &outageKit{t: t, origins: newFleetOrigins(t)}
	k.lone = startFleet(t, 1, fleetGateConfig("", "", outageBounds))[0]
	running := make(chan struct{}, 6)
	results := make([]chan *outageRun, len(outageCases))
	for i := range outageCases {
		results[i] = make(chan *outageRun, 1)
		go func() {
			running <- struct{}{}
			defer func() { <-running }()
			results[i] <- k.run(&outageCases[i])
		}()
	}
	var runs []*outageRun
	for _, result := range results {
		runs = append(runs, <-result)
	}
	t.Logf("%d outages, with %d checks of each", len(outageCases), len(outageChecks))
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			if len(r.problems) > 0 {
				// The machine may have been busy, with the other outages too: it runs again, alone.
				t.Logf("at first %q", r.problems)
				r = k.run(r.outage)
			}
			t.Log(r.figures)
			for _, check := range outageChecks {
				t.Run(check, func(t *testing.T) {
					for _, problem := range r.problems[check] {
						t.Error(problem)
					}
				})
			}
			if t.Failed() {
				for i, log := range r.logs {
					t.Logf("gate %d:\n%s", i, lastLines(log, 20))
				}
			}
		})
	}
}

// outageBounds let a gate wait for a permission for 3 s and 4 s.
const outageBounds = "robots: {timeout: 3s}\n"

type outageKit struct {
	t       *testing.T
	origins *fleetOrigins
	lone    *fleetGate
}

// An outageRun is an outage that takes place.
type outageRun struct {
	*outage
	*outageKit
	ctx    context.Context
	redis  *gatetest.RedisServer
	cable  *gatetest.Cable
	store  *storeClient
	key    string
	gates  []*fleetGate
	mended chan struct{} // closed before the store is mended
	loops  sync.WaitGroup

	changing string   // an origin that step changes
	known    []string // URLs that both gates know
	expected map[string]string

	mu       sync.Mutex
	problems map[string][]string
	samples  map[*fleetGate][]sample
	figures  string
	logs     []string
}

// A sample is a request to a known origin.
type sample struct {
	at   time.Time
	took time.Duration
}

// fail notes a problem with a check.
func (r *outageRun) fail(check, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all := r.problems[check]; len(all) < 5 {
		r.problems[check] = append(all, fmt.Sprintf(format, args...))
	}
}

func (k *outageKit) run(o *outage) *outageRun {
	ctx, cancel := context.WithCancel(k.t.Context())
	defer cancel()
	r := &outageRun{
		outage: o, outageKit: k, ctx: ctx, redis: gatetest.Redis(k.t, o.args...), key: newFleetKey(k.t), mended: make(chan struct{}),
		expected: map[string]string{}, problems: map[string][]string{}, samples: map[*fleetGate][]sample{},
	}
	defer r.redis.Kill()
	r.cable, r.store = gatetest.NewCable(k.t, r.redis.HostPort()), &storeClient{hostPort: r.redis.HostPort()}
	defer r.store.close()
	r.steps(o.prepare)
	for range 2 {
		g, err := startFleetGate(k.t, fleetGateConfig("redis://"+o.login+r.cable.HostPort(), r.key, outageBounds))
		if err != nil {
			r.fail("no request fails", "%v", err)
			return r
		}
		defer g.end()
		r.gates = append(r.gates, g)
	}
	if !o.late && !r.connected(30*time.Second) {
		r.fail("the state is known", "the gates are not connected at first")
		return r
	}
	r.happen()
	return r
}

// connected waits until all gates are connected.
func (r *outageRun) connected(limit time.Duration) bool {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(20 * time.Millisecond) { // real time: they are other processes
		if !slices.ContainsFunc(r.gates, func(g *fleetGate) bool { return !g.connected() }) {
			return true
		}
	}
	return false
}

// happen breaks the store and mends it.
func (r *outageRun) happen() {
	longest := measureStalls()
	for _, kind := range []int{withRules, closedOrigin, withoutFile, brokenOrigin, withRules, redirecting} {
		origin := r.origins.next(kind)
		r.known = append(r.known, origin+"/page", origin+"/private/")
	}
	r.changing = r.origins.next(changing)
	for _, url := range append(r.known, r.changing+"/page", r.changing+"/private/") {
		for _, g := range r.gates {
			r.compare(g, url)
		}
	}
	var half []string // that only the first gate knows
	for _, kind := range []int{withRules, closedOrigin, withoutFile, withRules, redirecting, closedOrigin} {
		origin := r.origins.next(kind)
		half = append(half, origin+"/page", origin+"/private/")
	}
	for _, url := range half {
		r.compare(r.gates[0], url)
	}
	over := make(chan struct{})
	var clients sync.WaitGroup
	for _, g := range append(slices.Clone(r.gates), r.lone) {
		clients.Go(func() { r.traffic(g, over) })
	}
	time.Sleep(300 * time.Millisecond) // real time: the gates are other processes
	broken := time.Now()
	r.steps(r.do)
	open := broken
	if r.away {
		open = r.noticed(broken)
	}
	slowest := time.Duration(0) // of origins that a gate does not know
	for _, url := range half {
		slowest = max(slowest, r.compare(r.gates[1], url))
	}
	for _, kind := range []int{withRules, closedOrigin, varying, brokenOrigin} {
		origin := r.origins.next(kind)
		for _, g := range r.gates {
			slowest = max(slowest, r.compare(g, origin+"/page"), r.compare(g, origin+"/private/"))
		}
	}
	if left := max(r.lasts, 2*time.Second) - time.Since(broken); left > 0 {
		time.Sleep(left) // real time: the gates are other processes
	}
	if r.away && slices.ContainsFunc(r.gates, (*fleetGate).connected) {
		r.fail("the state is known", "a gate is connected though the store is broken")
	}
	mended := time.Now()
	close(r.mended)
	r.loops.Wait()
	r.steps(r.mend)
	back := r.back()
	for _, url := range append(append(r.known, half...), r.changing+"/page") {
		for _, g := range r.gates {
			r.compare(g, url)
		}
	}
	close(over)
	clients.Wait()
	stall := longest()
	r.latency(open, mended, stall)
	r.figures += fmt.Sprintf("; unknown origins within %v; back in service after %v; a goroutine of this process waited for the processor for at most %v", slowest, back, stall)
	if back > 10*time.Second+stall {
		r.fail("back in service within 10 s", "back in service after %v", back)
	}
	r.checkRejected()
	r.checkLogs()
}

// compare asks a gate and the lone gate for a URL, and returns how much longer the gate took.
func (r *outageRun) compare(g *fleetGate, url string) time.Duration {
	got, err := g.ask(r.ctx, "GoodBot/1.0", url)
	if err != nil || got.status >= 500 {
		r.fail("no request fails", "%s: %v, %s", url, err, got.same())
		return 0
	}
	want, err := r.lone.ask(r.ctx, "GoodBot/1.0", url)
	if err != nil {
		r.fail("no request fails", "the lone gate: %s: %v", url, err)
		return 0
	}
	if got.same() != want.same() {
		r.fail("decisions are those of a lone gate", "%s:\ngot  %s\nwant %s", url, got.same(), want.same())
	}
	r.mu.Lock()
	r.expected[url] = want.same()
	r.mu.Unlock()
	return got.took - want.took
}

// traffic sends requests to known origins.
func (r *outageRun) traffic(g *fleetGate, over chan struct{}) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-over:
			return
		}
		url := r.known[i%len(r.known)]
		begin := time.Now()
		a, err := g.ask(r.ctx, "GoodBot/1.0", url)
		if err != nil || a.status >= 500 {
			r.fail("no request fails", "%s: %v, %s", url, err, a.same())
			continue
		}
		r.mu.Lock()
		want := r.expected[url]
		r.samples[g] = append(r.samples[g], sample{begin, a.took})
		r.mu.Unlock()
		if a.same() != want {
			r.fail("decisions are those of a lone gate", "%s:\ngot  %s\nwant %s", url, a.same(), want)
		}
	}
}

// noticed waits until the gates have noticed that the store is away, and returns when.
func (r *outageRun) noticed(broken time.Time) time.Time {
	for time.Since(broken) < 15*time.Second {
		if !slices.ContainsFunc(r.gates, (*fleetGate).connected) {
			return time.Now()
		}
		time.Sleep(20 * time.Millisecond) // real time: the gates are other processes
	}
	r.fail("the state is known", "the gates have not noticed that the store is away")
	return time.Now()
}

// back waits until the gates are connected and an origin that no gate knew is fetched once for both, and returns
// after what time.
func (r *outageRun) back() time.Duration {
	begin := time.Now()
	for time.Since(begin) < 30*time.Second {
		if r.connected(100 * time.Millisecond) {
			origin := r.origins.next(withRules)
			for _, g := range r.gates {
				if a, err := g.ask(r.ctx, "GoodBot/1.0", origin+"/page"); err != nil || a.status != 200 {
					r.fail("no request fails", "%s: %v, %s", origin, err, a.same())
				}
			}
			if r.origins.fetched(origin) == 1 {
				return time.Since(begin)
			}
		}
	}
	for _, g := range r.gates {
		s, err := g.status()
		r.fail("back in service within 10 s", "%+v, %v", s, err)
	}
	return time.Since(begin)
}

// latency compares the gates with the lone one.
func (r *outageRun) latency(from, to time.Time, stall time.Duration) {
	p99 := func(g *fleetGate) time.Duration {
		var all []time.Duration
		for _, s := range r.samples[g] {
			if s.at.After(from) && s.at.Before(to) {
				all = append(all, s.took)
			}
		}
		slices.Sort(all)
		if len(all) == 0 {
			return 0
		}
		return all[len(all)*99/100]
	}
	lone, added := p99(r.lone), time.Duration(0)
	for _, g := range r.gates {
		added = max(added, p99(g)-lone)
	}
	r.figures = fmt.Sprintf("p99 of a lone gate %v, %v more in the fleet", lone, added)
	if added > 5*time.Millisecond+stall {
		r.fail("known origins are answered in time", "%s; a goroutine of this process waited for the processor for at most %v", r.figures, stall)
	}
}

// checkRejected looks at the counters.
func (r *outageRun) checkRejected() {
	rejected := 0
	for _, g := range r.gates {
		s, err := g.status()
		if err != nil {
			r.fail("values are rejected", "%v", err)
		}
		rejected += s.Rejected
	}
	if r.rejected && rejected == 0 {
		r.fail("values are rejected", "no value was rejected")
	}
}

var stateLine = regexp.MustCompile(`connected to the fleet's store|the fleet's store is away.*`)

// checkLogs checks that each change is logged once, and no secret.
func (r *outageRun) checkLogs() {
	for _, g := range r.gates {
		log := g.Log.String()
		r.logs = append(r.logs, log)
		away := map[string]bool{} // the advice since it is away
		up := false
		for _, line := range stateLine.FindAllString(log, -1) {
			_, advice, isAway := strings.Cut(line, " advice=")
			switch {
			case isAway && away[advice]:
				r.fail("the log names each change once", "twice: %s", line)
			case isAway:
				away[advice], up = true, false
			case up:
				r.fail("the log names each change once", "connected twice")
			default:
				clear(away)
				up = true
			}
		}
		if !up {
			r.fail("the log names each change once", "connected is not the last line")
		}
		if strings.Contains(log, "sesame") || strings.Contains(log, "panic") {
			r.fail("no secret is logged", "the log has a password or a panic")
		}
		key := []byte(gatetest.Read(r.t, r.key))
		filepath.WalkDir(filepath.Join(filepath.Dir(g.config), "data"), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil
			}
			if data, err := os.ReadFile(path); err == nil && (bytes.Contains(data, []byte("sesame")) || bytes.Contains(data, key)) {
				r.fail("no secret is logged", "%s has a secret", path)
			}
			return nil
		})
	}
}

// steps runs steps until one fails.
func (r *outageRun) steps(steps []string) {
	for _, step := range steps {
		word, rest, _ := strings.Cut(step, " ")
		var err error
		switch word {
		case "loop":
			r.loops.Go(func() {
				for {
					select {
					case <-r.mended:
						return
					case <-time.After(20 * time.Millisecond): // real time: the server is another process
						_ = r.step(rest) // some fail while the store is broken
					}
				}
			})
		case "background":
			go func() {
				store := &storeClient{hostPort: r.redis.HostPort()}
				defer store.close()
				_ = command(store, rest) // it ends when the store is mended
			}()
			time.Sleep(50 * time.Millisecond) // real time: the server is another process
		default:
			err = r.step(step)
		}
		if err != nil {
			r.fail("the state is known", "%s: %v", step, err)
			return
		}
	}
}

func (r *outageRun) step(step string) error {
	word, rest, _ := strings.Cut(step, " ")
	switch word {
	case "stop":
		r.redis.Stop()
	case "continue":
		r.redis.Continue()
	case "kill":
		r.redis.Kill()
	case "start":
		r.redis.Restart()
	case "cut":
		r.cable.Cut()
	case "hang":
		r.cable.Hang()
	case "hang-requests":
		r.cable.HangRequests()
	case "hang-answers":
		r.cable.HangAnswers()
	case "slow", "pass":
		d, err := time.ParseDuration(rest)
		if word == "slow" {
			r.cable.Slow(d)
		} else {
			time.Sleep(d) // real time: the gates are other processes
		}
		return err
	case "restore":
		r.cable.Restore()
	case "redis", "script":
		err := command(r.store, step)
		if rest == "SHUTDOWN NOSAVE" {
			return nil // there is no answer
		}
		return err
	case "answers":
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) { // real time: the server is another process
			if _, err := r.store.do("SET", "other", "x", "PX", "1"); err == nil || time.Since(begin) > 30*time.Second {
				return err
			}
		}
	case "refuses":
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) { // real time: the server is another process
			_, err := r.store.do("SET", "other", "x", "PX", "1")
			if err != nil && strings.HasPrefix(err.Error(), rest) {
				return nil
			}
			if time.Since(begin) > 10*time.Second {
				return fmt.Errorf("the store does not refuse to write: %v", err)
			}
		}
	case "user":
		_, err := r.store.do(documentedUser(r.t, "gate", "sesame-1")...)
		return err
	case "fill": // keys that take long to load
		_, err := r.store.do("EVAL", `for i = 1, 1000 do redis.call('SET', 'other:' .. i, 'x') end`, "0")
		return err
	case "sealed":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err
		}
		return r.sealed(d)
	case "fake":
		r.cable.Lead(serveFake(r.t, r.ctx, rest))
	case "another":
		r.cable.Lead(gatetest.Redis(r.t, strings.Fields(rest)...).HostPort())
	case "back":
		r.cable.Lead(r.redis.HostPort())
	case "other":
		return r.otherFleet()
	case "change":
		return r.change()
	default:
		return fmt.Errorf("no such step")
	}
	return nil
}

// command sends a command or a script to a store.
func command(store *storeClient, step string) error {
	word, rest, _ := strings.Cut(step, " ")
	args := strings.Split(rest, " ")
	if word == "script" {
		args = []string{"EVAL", outageScripts[rest], "0"}
	}
	_, err := store.do(args...)
	return err
}

// documentedUser returns the command of docs/fleet.md that makes the store's user.
func documentedUser(t *testing.T, name, password string) []string {
	for line := range strings.Lines(gatetest.Read(t, "../../docs/fleet.md")) {
		if strings.HasPrefix(line, "ACL SETUSER gate ") {
			args := strings.Fields(strings.Replace(line, ">PASSWORD", ">"+password, 1))
			args[2] = name
			return slices.Insert(args, 3, "reset")
		}
	}
	t.Error("docs/fleet.md has no command for the store's user")
	return nil
}

// sealed replaces the time at which the records were sealed, as a gate with a wrong clock would.
func (r *outageRun) sealed(ahead time.Duration) error {
	secret, err := os.ReadFile(r.key)
	if err != nil {
		return err
	}
	macs, err := hkdf.Key(sha256.New, secret, nil, "robotsgate fleet macs", 32)
	if err != nil {
		return err
	}
	keys, err := r.store.do("KEYS", "*:s")
	if err != nil {
		return err
	}
	changed := 0
	for _, key := range keys.([]any) {
		name := strings.TrimSuffix(key.(string), ":s")
		value, err := r.store.do("HGET", key.(string), "r")
		if err != nil {
			return err
		}
		text, _ := value.(string)
		if len(text) < 9+sha256.Size {
			continue // a permission without a record
		}
		mac := func(sealed string) string {
			h := hmac.New(sha256.New, macs)
			for _, part := range []string{name, "record"} {
				h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
				io.WriteString(h, part)
			}
			io.WriteString(h, sealed)
			return string(h.Sum(nil))
		}
		sealed, old := text[:len(text)-sha256.Size], text[len(text)-sha256.Size:]
		if mac(sealed) != old {
			return errors.New("the test seals values in another way than the gates")
		}
		at := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(ahead).UnixMilli()))
		sealed = sealed[:1] + string(at) + sealed[9:]
		if _, err := r.store.do("HSET", key.(string), "r", sealed+mac(sealed)); err != nil {
			return err
		}
		changed++
	}
	if changed == 0 {
		return errors.New("no record to change")
	}
	return nil
}

// otherFleet uses the store by a gate with another key.
func (r *outageRun) otherFleet() error {
	g, err := startFleetGate(r.t, fleetGateConfig("redis://"+r.cable.HostPort(), newFleetKey(r.t), outageBounds))
	if err != nil {
		return err
	}
	go func() {
		<-r.mended
		g.end()
	}()
	for _, url := range r.known {
		if _, err := g.ask(r.ctx, "GoodBot/1.0", url); err != nil {
			return err
		}
	}
	if err := g.refresh(strings.TrimSuffix(r.known[0], "/page")); err != nil {
		return err
	}
	time.Sleep(6 * time.Second) // real time: until all gates have announced themselves
	return nil
}

// change changes an origin, and waits until all gates decide by its new robots.txt.
func (r *outageRun) change() error {
	r.origins.change(r.changing)
	for _, g := range []*fleetGate{r.lone, r.gates[0]} {
		if err := g.refresh(r.changing); err != nil {
			return err
		}
	}
	for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(20 * time.Millisecond) { // real time: the gates are other processes
		if a, err := r.gates[1].ask(r.ctx, "GoodBot/1.0", r.changing+"/page"); err == nil && a.status == 403 {
			return nil
		}
	}
	return fmt.Errorf("the other gate has not the new copy of %s", r.changing)
}

// serveFake starts a server that is no Redis, and returns its host:port.
func serveFake(t *testing.T, ctx context.Context, name string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return "127.0.0.1:1"
	}
	context.AfterFunc(ctx, func() { l.Close() })
	fake := fakeServers[name]
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			if name == "closed" {
				conn.Close()
				continue
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 4096)
				for {
					if _, err := conn.Read(buffer); err != nil {
						return
					}
					if _, err := io.WriteString(conn, fake.text); err != nil {
						return
					}
					for endless := bytes.Repeat([]byte(fake.endless), 8); len(endless) > 0; runtime.Gosched() {
						if _, err := conn.Write(endless); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
