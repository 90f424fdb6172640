//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// A busyOrigin answers 429 to /busy; RetryAfter is in the query. The first request 2.5 s later is answered
// after a second.
type busyOrigin struct {
	*httptest.Server
	mu     sync.Mutex
	busy   time.Time
	starts []arrival
}

func newBusyOrigin(t *testing.T) *busyOrigin {
	t.Helper()
	o := &busyOrigin{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private/\n")
			return
		}
		now := time.Now()
		o.mu.Lock()
		o.starts = append(o.starts, arrival{now, r.URL.Path, r.UserAgent()})
		slow := !o.busy.IsZero() && now.Sub(o.busy) > 2500*time.Millisecond
		if slow {
			o.busy = time.Time{}
		}
		if r.URL.Path == "/busy" {
			o.busy = now
		}
		o.mu.Unlock()
		if r.URL.Path == "/busy" {
			if after := r.URL.RawQuery; after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if slow {
			time.Sleep(time.Second) // real time: the gates are other processes
		}
	}))
	t.Cleanup(o.Close)
	return o
}

// arrived returns the requests of an agent between two times; "" is any.
func (o *busyOrigin) arrived(agent string, from, to time.Time) (all []arrival) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.starts {
		if (agent == "" || a.agent == agent) && a.at.After(from) && a.at.Before(to) {
			all = append(all, a)
		}
	}
	return all
}

// TestFleetPauses: a pause that an origin has asked one of four gates for holds at all of them, while clients
// of each send requests all the time. Then one request goes first, and those of all gates follow when its
// answer is there.
func TestFleetPauses(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	redis, origin := gatetest.Redis(t), newBusyOrigin(t)
	gates := startFleet(t, 4, fleetGateConfig(redis.Address(), newFleetKey(t), patientFleet+"pace: {back_off: 1m}\n"))
	waitFleet(t, gates)
	longest := measureStalls()
	var over atomic.Bool
	var clients sync.WaitGroup
	for i, g := range gates {
		for range 2 {
			clients.Go(func() {
				for !over.Load() {
					if a, err := g.ask(t.Context(), agentOf(i), origin.URL+"/page"); err != nil || a.status != http.StatusOK {
						t.Errorf("gate %d: %s, %v", i, a.same(), err)
						return
					}
				}
			})
		}
	}
	gatetest.Becomes(t, 30*time.Second, "requests of all gates", func() bool {
		for i := range gates {
			if len(origin.arrived(agentOf(i), time.Time{}, time.Now())) < 50 {
				return false
			}
		}
		return true
	})
	a := gates[0].mustAsk(t, origin.URL+"/busy?3")
	told := time.Now()
	if a.status != http.StatusTooManyRequests {
		t.Errorf("/busy: got %s, want the origin's 429", a.same())
	}
	time.Sleep(5500 * time.Millisecond) // real time: the gates are other processes
	over.Store(true)
	clients.Wait()
	stall := longest()
	begun := origin.arrived("GoodBot/1.0", time.Time{}, time.Now())
	begin := begun[len(begun)-1].at               // of the pause: that agent has asked for /busy only
	sent := told.Add(20*time.Millisecond + stall) // until then requests arrive that were sent before
	if during := origin.arrived("", sent, begin.Add(3*time.Second-50*time.Millisecond)); len(during) > 0 {
		t.Errorf("%d requests arrived within the pause, the first %v after it began", len(during), during[0].at.Sub(begin))
	}
	late := origin.arrived("", begin, sent)
	after := origin.arrived("", begin.Add(2900*time.Millisecond), time.Now())
	if len(after) < 2 {
		t.Fatalf("%d requests arrived after the pause", len(after))
	}
	first, second := after[0].at, after[1].at
	t.Logf("%d requests arrived on their way while the client was told of the 429, %v after the pause began; the first after the pause "+
		"%v after its begin, the second %v later; a goroutine of this process waited for the processor for at most %v",
		len(late), told.Sub(begin), first.Sub(begin), second.Sub(first), stall)
	if d := second.Sub(first); d < time.Second-stall {
		t.Errorf("the second request arrived %v after the first, which was answered after 1 s", d)
	}
	for i := range gates {
		if got := origin.arrived(agentOf(i), second.Add(-time.Millisecond), second.Add(500*time.Millisecond+stall)); len(got) == 0 {
			t.Errorf("gate %d does not follow", i)
		}
	}
}

// agentOf returns the User-Agent of a gate's clients, with the same product token for all.
func agentOf(gate int) string { return fmt.Sprintf("GoodBot/2.%d", gate) }

// TestFleetPausesDouble: a second 429, to another gate, doubles the pause of a third.
func TestFleetPausesDouble(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	redis, origin := gatetest.Redis(t), newBusyOrigin(t)
	gates := startFleet(t, 3, fleetGateConfig(redis.Address(), newFleetKey(t), patientFleet+"pace: {back_off: 1m}\n"))
	waitFleet(t, gates)
	for i, path := range []string{"/busy", "/busy", "/page"} {
		gates[i].mustAsk(t, origin.URL+path)
	}
	got := origin.arrived("", time.Time{}, time.Now())
	if len(got) != 3 {
		t.Fatalf("%d requests arrived", len(got))
	}
	for i, want := range []time.Duration{5 * time.Second, 10 * time.Second} {
		if d := got[i+1].at.Sub(got[i].at); d < want-50*time.Millisecond || d > want+time.Second {
			t.Errorf("request %d arrived %v after the one before, want %v", i+1, d, want)
		}
	}
	if text := gates[2].Log.String(); strings.Contains(text, "ignored") {
		t.Errorf("values were rejected: %s", text)
	}
}
