package auth

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A bench is a Verifier whose comparisons begin when a slot is free, and end when the
// test says so.
type bench struct {
	t *testing.T
	*Verifier
	mu    sync.Mutex
	begun []string // passwords, in order
	end   chan struct{}
}

// newBench is to be used inside a bubble of synctest. Every hash is that of all passwords
// that begin with "right".
func newBench(t *testing.T, slots int) *bench {
	b := &bench{t: t, Verifier: NewVerifier(), end: make(chan struct{})}
	b.slots = slots
	b.compare = func(_, password []byte) bool {
		b.mu.Lock()
		b.begun = append(b.begun, string(password))
		b.mu.Unlock()
		<-b.end
		return strings.HasPrefix(string(password), "right")
	}
	return b
}

// verify verifies a login in the background.
func (b *bench) verify(ctx context.Context, client, user, password string) <-chan string {
	result := make(chan string, 1)
	go func() {
		holds, err := b.Verify(ctx, netip.MustParseAddr(client), []byte("hash"), &Login{User: user, Password: password})
		if err != nil {
			result <- err.Error()
			return
		}
		result <- fmt.Sprint(holds)
	}()
	synctest.Wait()
	return result
}

// finish ends n comparisons, one after the other.
func (b *bench) finish(n int) {
	for range n {
		b.end <- struct{}{}
		synctest.Wait()
	}
}

// finishAll ends all comparisons, and checks that nothing is left of them.
func (b *bench) finishAll() {
	for {
		select {
		case b.end <- struct{}{}:
			synctest.Wait()
		default:
			if n := len(b.queue.attempts); n != 0 {
				b.t.Errorf("%d attempts are left", n)
			}
			return
		}
	}
}

// waiting returns the attempts that have not begun, in order of arrival.
func (b *bench) waiting() []*attempt {
	b.Verifier.mu.Lock()
	defer b.Verifier.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.queue.attempts), func(a *attempt) bool { return a.running })
}

func (b *bench) wantBegun(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.begun, want) {
		b.t.Errorf("compared: %q, want %q", b.begun, want)
	}
}

// A client that floods the gate with wrong passwords delays itself: another client has its
// turn after one comparison for each address before it.
func TestFloodOfWrongPasswords(t *testing.T) {
	for _, attackers := range []int{1, 5, 50} {
		for _, slots := range []int{1, 4} {
			t.Run(fmt.Sprint(attackers, " addresses, ", slots, " slots"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, slots)
					for i := range 20 {
						for a := range attackers {
							b.verify(t.Context(), fmt.Sprintf("192.0.2.%d", a), "user", fmt.Sprintf("wrong %d of %d", i, a))
						}
					}
					before := len(b.begun)
					honest := b.verify(t.Context(), "198.51.100.1", "user", "right")
					for n := 0; len(honest) == 0; n++ {
						if n > attackers+slots {
							t.Fatalf("no turn after %d comparisons", n)
						}
						b.finish(1)
					}
					if got := <-honest; got != "true" {
						t.Errorf("the honest client: %s", got)
					}
					i := slices.Index(b.begun, "right")
					if i-before > attackers {
						t.Errorf("%d comparisons were begun before that of the honest client", i-before)
					}
					b.finishAll()
				})
			})
		}
	}
}

// A flood for one user from many addresses does not delay other users, even if they share
// an address with it.
func TestFloodFromManyAddresses(t *testing.T) {
	for _, slots := range []int{1, 4} {
		for _, client := range []string{"198.51.100.1", "192.0.2.150"} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, slots)
				for i := range 500 {
					b.verify(t.Context(), fmt.Sprintf("192.0.%d.%d", 2+i/250, i%250), "user", fmt.Sprint("wrong ", i))
				}
				honest := b.verify(t.Context(), client, "other", "right")
				b.finish(slots + 3)
				if len(honest) == 0 || <-honest != "true" {
					t.Errorf("%d slots, %s: no turn after %q", slots, client, b.begun)
				}
				b.finishAll()
			})
		}
	}
}

// The same holds when no more attempts may wait. One for the user with the most attempts
// makes room.
func TestFloodThatFillsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		var ended sync.Map // errors, by number
		flood := func(i int) {
			_, err := b.Verify(t.Context(), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), []byte("hash"), &Login{User: "user", Password: fmt.Sprint("wrong ", i)})
			ended.Store(i, err)
		}
		for i := range maxWaiting + 1 { // one is running
			go flood(i)
		}
		synctest.Wait()
		if n := len(b.waiting()); n != maxWaiting {
			t.Fatalf("%d wait, want %d", n, maxWaiting)
		}
		oldest := b.waiting()[0].password
		late := b.verify(t.Context(), "198.51.100.2", "user", "wrong")
		if len(late) != 0 || len(b.waiting()) != maxWaiting || b.waiting()[0].password == oldest {
			t.Errorf("the oldest of the same user's did not make room for the latest")
		}
		honest := b.verify(t.Context(), "198.51.100.1", "other", "right")
		b.finish(4) // the running one, two of the flood, and its own
		if len(honest) == 0 || <-honest != "true" {
			t.Errorf("the honest client has had no turn after %q", b.begun)
		}
		busy := 0
		ended.Range(func(_, err any) bool {
			if err == ErrBusy {
				busy++
			}
			return true
		})
		if busy != 2 {
			t.Errorf("%d attempts made room, want 2", busy)
		}
		b.finishAll()
	})
}

// No client has two comparisons running, and all together have no more than the slots, for which half of the
// processors are used.
func TestComparisonsAtATime(t *testing.T) {
	if got, want := NewVerifier().slots, max(1, runtime.GOMAXPROCS(0)/2); got != want {
		t.Errorf("%d comparisons run at a time, want %d", got, want)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3)
		for i := range 4 {
			b.verify(t.Context(), "192.0.2.1", "user", fmt.Sprint("a", i))
		}
		b.wantBegun("a0")
		b.verify(t.Context(), "192.0.2.2", "user", "b0")
		b.verify(t.Context(), "192.0.2.2", "user", "b1")
		b.wantBegun("a0", "b0")
		b.verify(t.Context(), "192.0.2.3", "user", "c0")
		b.verify(t.Context(), "192.0.2.4", "user", "d0")
		b.wantBegun("a0", "b0", "c0")
		b.finish(3)
		if got := slices.Sorted(slices.Values(b.begun)); !slices.Equal(got, []string{"a0", "a1", "b0", "b1", "c0", "d0"}) {
			t.Errorf("compared after three: %q", got)
		}
		b.finishAll()
	})
}

// A client that shares the attacker's address does not wait for more than maxFresh others,
// whatever its user name, if the attacker waits for responses before it tries on: one attempt
// follows each comparison. This holds too when no more attempts of the address may wait.
func TestFloodFromTheSameAddress(t *testing.T) {
	for _, user := range []string{"user", "other"} {
		for _, wrong := range []int{10, 2 * maxWaitingPerClient} {
			t.Run(fmt.Sprint(user, ", ", wrong), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, 1)
					for i := range wrong {
						b.verify(t.Context(), "192.0.2.1", "user", fmt.Sprint("wrong ", i))
					}
					honest := b.verify(t.Context(), "192.0.2.1", user, "right")
					for i := range 1 + maxFresh { // what is running, the fresh ones before it, and its own
						b.verify(t.Context(), "192.0.2.1", "user", fmt.Sprint("again ", i))
						if b.finish(1); len(honest) > 0 {
							break
						}
					}
					if len(honest) == 0 || <-honest != "true" {
						t.Errorf("the honest client has had no turn after %q", b.begun)
					}
					b.finishAll()
				})
			})
		}
	}
}

// A login is compared once. Requests with the same login wait for the same comparison.
func TestComparedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		var results []<-chan string
		for range 100 {
			results = append(results, b.verify(t.Context(), "192.0.2.1", "user", "right"), b.verify(t.Context(), "192.0.2.1", "user", "wrong"))
		}
		b.finishAll()
		for i, r := range results {
			if got, want := <-r, []string{"true", "false"}[i%2]; got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
		for password, want := range map[string]string{"right": "true", "wrong": "false"} {
			if got := <-b.verify(t.Context(), "198.51.100.1", "user", password); got != want {
				t.Errorf("%s, again: %s", password, got)
			}
		}
		b.wantBegun("right", "wrong")
		if right, wrong := b.Comparisons(); right != 1 || wrong != 1 {
			t.Errorf("counted: %d right and %d wrong comparisons, want 1 and 1", right, wrong)
		}
	})
}

// A login that two clients send at the same time is compared for the first only.
func TestComparedForAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		first, second := b.verify(t.Context(), "192.0.2.1", "user", "right"), b.verify(t.Context(), "192.0.2.2", "user", "right")
		b.finish(1)
		if a, c := <-first, <-second; a != "true" || c != "true" {
			t.Errorf("got %s and %s", a, c)
		}
		b.wantBegun("right")
		b.finishAll()
	})
}

func TestQueueBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		var results []<-chan string
		for i := range maxWaitingPerClient + 1 { // one is running
			results = append(results, b.verify(t.Context(), "192.0.2.1", "user", fmt.Sprint(i)))
		}
		b.verify(t.Context(), "192.0.2.1", "user", "one more")
		if got := <-results[1]; got != ErrBusy.Error() { // the oldest that waits
			t.Errorf("one too many of a client: %s", got)
		}
		// Sixteen such clients fill the queue.
		for a := 2; len(b.waiting()) < maxWaiting; a++ {
			for i := range maxWaitingPerClient {
				b.verify(t.Context(), fmt.Sprintf("192.0.2.%d", a), "user", fmt.Sprint(a, "/", i))
			}
		}
		b.verify(t.Context(), "198.51.100.1", "user", "right")
		if n := len(b.waiting()); n != maxWaiting {
			t.Errorf("%d wait, want %d", n, maxWaiting)
		}
		ended := 0
		for _, r := range results {
			ended += len(r)
		}
		if last := b.waiting()[maxWaiting-1].password; last != "right" || ended > 2 {
			t.Errorf("the newcomer does not wait, but %q; %d attempts of one client made room, want 2 at most", last, ended)
		}
		b.finishAll()
	})
}

// An attempt is not begun if all requests that wait for it have ended.
func TestRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.verify(t.Context(), "192.0.2.1", "user", "running")
		ctx, end := context.WithCancel(t.Context())
		alone := b.verify(ctx, "192.0.2.1", "user", "alone")
		shared := b.verify(ctx, "192.0.2.1", "user", "shared")
		other := b.verify(t.Context(), "192.0.2.1", "user", "shared")
		end()
		for _, r := range []<-chan string{alone, shared} {
			if got := <-r; got != context.Canceled.Error() {
				t.Errorf("a request that ended: %s", got)
			}
		}
		b.finishAll()
		if got := <-other; got != "false" {
			t.Errorf("the other request: %s", got)
		}
		b.wantBegun("running", "shared")
	})
}

func TestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		first, second := b.verify(t.Context(), "192.0.2.1", "user", "a"), b.verify(t.Context(), "192.0.2.2", "user", "b")
		begun := time.Now()
		if a, c := <-first, <-second; a != ErrBusy.Error() || c != ErrBusy.Error() || time.Since(begun) != maxWait {
			t.Errorf("got %s and %s after %v", a, c, time.Since(begun))
		}
		b.finishAll()
		b.wantBegun("a")
	})
}

// The remembered verdicts are bounded, and wrong passwords do not displace right ones.
func TestVerdictsAreBounded(t *testing.T) {
	v := NewVerifier()
	v.compare = func(_, password []byte) bool { return string(password) == "right" }
	try := func(password string) bool {
		holds, err := v.Verify(t.Context(), netip.MustParseAddr("192.0.2.1"), nil, &Login{Password: password})
		return err == nil && holds
	}
	if !try("right") {
		t.Fatal("the right password does not hold")
	}
	for i := range maxVerdicts + 100 {
		if try(fmt.Sprint(i)) {
			t.Fatalf("%d holds", i)
		}
	}
	v.compare = func([]byte, []byte) bool { t.Error("compared again"); return false }
	if !try("right") || len(v.wrong.known) != maxVerdicts || len(v.right.known) != 1 {
		t.Errorf("%d wrong and %d right ones", len(v.wrong.known), len(v.right.known))
	}
}

// A verdict is remembered by hash, user name and password, told apart.
func TestProof(t *testing.T) {
	v := NewVerifier()
	seen := map[proof]string{}
	for _, c := range [][3]string{{"h", "u", "p"}, {"h", "up", ""}, {"h", "", "up"}, {"hu", "", "p"}, {"", "hu", "p"}, {"g", "u", "p"}, {"h", "u", "q"}} {
		p := v.proof([]byte(c[0]), &Login{User: c[1], Password: c[2]})
		if other, taken := seen[p]; taken {
			t.Errorf("%q has the same proof as %s", c, other)
		}
		seen[p] = fmt.Sprintf("%q", c)
	}
	if NewVerifier().proof([]byte("h"), &Login{User: "u", Password: "p"}) == v.proof([]byte("h"), &Login{User: "u", Password: "p"}) {
		t.Error("another process makes the same proof")
	}
}
