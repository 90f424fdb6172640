package auth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A bench is a verifier whose comparisons begin when there is room, and end when the
// test says so.
type bench struct {
	t *testing.T
	*Verifier
	mu    sync.Mutex
	begun []string // passwords, in order
	end   chan struct{}
}

// newBench is to be used inside a bubble of synctest. The password "right" is that of
// every hash.
func newBench(t *testing.T, slots int) *bench {
	b := &bench{t: t, Verifier: NewVerifier(), end: make(chan struct{})}
	b.slots = slots
	b.Compare = func(_, password []byte) bool {
		b.mu.Lock()
		b.begun = append(b.begun, string(password))
		b.mu.Unlock()
		<-b.end
		return strings.HasPrefix(string(password), "right")
	}
	return b
}

// ask tries a password in the background.
func (b *bench) ask(ctx context.Context, client, password string) <-chan string {
	return b.askAs(ctx, client, "user", password, 0)
}

// askAs does so with a user name and a number of failures of the same connection.
func (b *bench) askAs(ctx context.Context, client, user, password string, failures int) <-chan string {
	said := make(chan string, 1)
	go func() {
		a := Attempt{Client: netip.MustParseAddr(client), Hash: []byte("hash"), User: user, Password: password, Failures: failures}
		a.Proof = b.Proof(a.Hash, a.User, a.Password)
		holds, err := b.Verify(ctx, a)
		if err != nil {
			said <- err.Error()
			return
		}
		said <- fmt.Sprint(holds)
	}()
	synctest.Wait()
	return said
}

// finish lets n comparisons end, one after the other.
func (b *bench) finish(n int) {
	for range n {
		b.end <- struct{}{}
		synctest.Wait()
	}
}

// all lets every comparison end that is still to come.
func (b *bench) all() {
	for {
		select {
		case b.end <- struct{}{}:
			synctest.Wait()
		default:
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.Verifier.running+b.waiting != 0 || len(b.lines)+len(b.turns)+len(b.names)+len(b.served) != 0 {
				b.t.Errorf("left behind: %d running, %d waiting, %d lines, %d turns", b.Verifier.running, b.waiting, len(b.lines), len(b.turns))
			}
			return
		}
	}
}

func (b *bench) wantBegun(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.begun, want) {
		b.t.Errorf("compared: %q, want %q", b.begun, want)
	}
}

// Whoever floods the gate with wrong passwords waits behind himself: a client from
// another address has its turn after one comparison for each address before it.
func TestFloodOfWrongPasswords(t *testing.T) {
	for _, attackers := range []int{1, 5, 50} {
		for _, slots := range []int{1, 4} {
			t.Run(fmt.Sprint(attackers, " addresses, ", slots, " slots"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, slots)
					for range 20 {
						for a := range attackers {
							b.ask(t.Context(), fmt.Sprintf("192.0.2.%d", a), fmt.Sprintf("wrong %d", len(b.begun)+b.waiting))
						}
					}
					before := len(b.begun)
					honest := b.ask(t.Context(), "198.51.100.1", "right")
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
					b.all()
				})
			})
		}
	}
}

// Nor does he stall other users from as many addresses as he likes, and be he that
// user's neighbour.
func TestFloodFromManyAddresses(t *testing.T) {
	for _, slots := range []int{1, 4} {
		for _, client := range []string{"198.51.100.1", "192.0.2.150"} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, slots)
				for i := range 500 {
					b.askAs(t.Context(), fmt.Sprintf("192.0.%d.%d", 2+i/250, i%250), "user", fmt.Sprint("wrong ", i), 0)
				}
				honest := b.askAs(t.Context(), client, "other", "right", 0)
				b.finish(slots + 3)
				if len(honest) == 0 || <-honest != "true" {
					t.Errorf("%d slots, %s: no turn after %q", slots, client, b.begun)
				}
				b.all()
			})
		}
	}
}

// That holds where no more may wait, too.
func TestFloodOfAllThatMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		for i := range maxTriedInAll + 1 {
			go func() {
				a := Attempt{Client: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Hash: []byte("hash"), User: "user", Password: fmt.Sprint("wrong ", i)}
				a.Proof = b.Proof(a.Hash, a.User, a.Password)
				_, _ = b.Verify(t.Context(), a)
			}()
		}
		synctest.Wait()
		if b.waiting != maxTriedInAll {
			t.Fatalf("%d wait", b.waiting)
		}
		if late := b.ask(t.Context(), "198.51.100.2", "right"); len(late) == 0 || <-late == "true" {
			t.Error("there is room for one more of the same user")
		}
		honest := b.askAs(t.Context(), "198.51.100.1", "other", "right", 0)
		b.finish(3)
		if len(honest) == 0 || <-honest != "true" {
			t.Errorf("the honest client has had no turn after %q", b.begun)
		}
		b.all()
	})
}

// No address has two comparisons running, and all together no more than the slots.
func TestComparisonsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3)
		for i := range 4 {
			b.ask(t.Context(), "192.0.2.1", fmt.Sprint("a", i))
		}
		b.wantBegun("a0")
		b.ask(t.Context(), "2001:db8::1", "b0")
		b.ask(t.Context(), "2001:db8::1", "b1")
		b.wantBegun("a0", "b0")
		b.ask(t.Context(), "2001:db8:0:1::1", "c0")
		b.ask(t.Context(), "2001:db8:0:2::1", "d0")
		b.wantBegun("a0", "b0", "c0")
		b.finish(1)
		b.finish(1)
		b.finish(1)
		if got := slices.Sorted(slices.Values(b.begun)); !slices.Equal(got, []string{"a0", "a3", "b0", "b1", "c0", "d0"}) {
			t.Errorf("compared after three: %q", got)
		}
		b.all()
	})
}

// Who shares the attacker's address waits no longer for it, if his user name is another
// the attacker stays on connections that have failed, or waits for answers before he
// tries on: also where no more may wait.
func TestFloodFromTheSameAddress(t *testing.T) {
	for _, c := range []struct {
		name     string
		user     string
		failures int
	}{{"another user", "other", 0}, {"the same user", "user", 0}, {"the same user, connections that have failed", "user", 1000}} {
		for _, wrong := range []int{10, 2 * maxTried} {
			t.Run(fmt.Sprint(c.name, ", ", wrong), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, 1)
					for i := range wrong {
						b.askAs(t.Context(), "192.0.2.1", "user", fmt.Sprint("wrong ", i), c.failures)
					}
					honest := b.askAs(t.Context(), "192.0.2.1", c.user, "right", 0)
					b.finish(3) // what is running, one in front, and itself
					if len(honest) == 0 || <-honest != "true" {
						t.Errorf("the honest client has had no turn after %q", b.begun)
					}
					b.all()
				})
			})
		}
	}
}

// What has been compared once is known to all; who asks meanwhile waits for the same.
func TestComparedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		var said []<-chan string
		for range 100 {
			said = append(said, b.ask(t.Context(), "192.0.2.1", "right"), b.ask(t.Context(), "192.0.2.1", "wrong"))
		}
		b.all()
		for i, s := range said {
			if got, want := <-s, []string{"true", "false"}[i%2]; got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
		for password, want := range map[string]string{"right": "true", "wrong": "false"} {
			if got := <-b.ask(t.Context(), "198.51.100.1", password); got != want {
				t.Errorf("%s, again: %s", password, got)
			}
		}
		b.wantBegun("right", "wrong")
	})
}

// A login that two addresses try at once is compared for the first, and not again.
func TestComparedForAnotherAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		first, second := b.ask(t.Context(), "192.0.2.1", "right"), b.ask(t.Context(), "192.0.2.2", "right")
		b.finish(1)
		if a, c := <-first, <-second; a != "true" || c != "true" {
			t.Errorf("got %s and %s", a, c)
		}
		b.wantBegun("right")
		b.all()
	})
}

func TestVerifierBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		var said []<-chan string
		for i := range maxTried + 1 { // one is running
			said = append(said, b.ask(t.Context(), "192.0.2.1", fmt.Sprint(i)))
		}
		b.ask(t.Context(), "192.0.2.1", "one more")
		if got := <-said[1]; got != ErrBusy.Error() { // the oldest that waits
			t.Errorf("one too many of an address: %s", got)
		}
		if got := <-b.askAs(t.Context(), "192.0.2.1", "user", "worse than all", 1000); got != ErrBusy.Error() {
			t.Errorf("one too many, by a connection that has failed: %s", got)
		}
		// Sixteen such addresses fill the verifier.
		for a := 2; b.waiting < maxTriedInAll; a++ {
			for i := range maxTried {
				b.ask(t.Context(), fmt.Sprintf("192.0.2.%d", a), fmt.Sprint(a, "/", i))
			}
		}
		b.ask(t.Context(), "198.51.100.1", "right")
		if b.waiting != maxTriedInAll {
			t.Errorf("%d wait", b.waiting)
		}
		sent := 0
		for _, s := range said {
			if len(s) == 1 {
				sent++
			}
		}
		if full := len(b.lines[netip.MustParseAddr("198.51.100.1")].trials); full != 1 || sent > 1 {
			t.Errorf("the newcomer has %d waiting, %d of one address were sent away", full, sent)
		}
		b.all()
	})
}

// A client that leaves takes back what has not been begun, unless another waits for
// the same.
func TestVerifierClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.ask(t.Context(), "192.0.2.1", "running")
		ctx, leave := context.WithCancel(t.Context())
		gone := b.ask(ctx, "192.0.2.1", "gone")
		shared := b.ask(ctx, "192.0.2.1", "shared")
		stays := b.ask(t.Context(), "192.0.2.1", "shared")
		leave()
		for _, s := range []<-chan string{gone, shared} {
			if got := <-s; got != context.Canceled.Error() {
				t.Errorf("who left: %s", got)
			}
		}
		b.all()
		if got := <-stays; got != "false" {
			t.Errorf("who stays: %s", got)
		}
		b.wantBegun("running", "shared")
	})
}

func TestVerifierPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		first, second := b.ask(t.Context(), "192.0.2.1", "a"), b.ask(t.Context(), "192.0.2.2", "b")
		begun := time.Now()
		if a, c := <-first, <-second; a != ErrBusy.Error() || c != ErrBusy.Error() || time.Since(begun) != verifierPatience {
			t.Errorf("got %s and %s after %v", a, c, time.Since(begun))
		}
		b.all()
		b.wantBegun("a")
	})
}

// Neither memory has more than its share, and wrong passwords don't drive out the
// right ones.
func TestVerdictsAreBounded(t *testing.T) {
	v := NewVerifier()
	v.Compare = func(_, password []byte) bool { return string(password) == "right" }
	try := func(password string) bool {
		holds, err := v.Verify(t.Context(), Attempt{Client: netip.MustParseAddr("192.0.2.1"), Proof: v.Proof(nil, "", password), Password: password})
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
	v.Compare = func([]byte, []byte) bool { t.Error("compared again"); return false }
	if !try("right") || len(v.bad) != maxVerdicts || len(v.good) != 1 {
		t.Errorf("%d bad and %d good ones", len(v.bad), len(v.good))
	}
}

// What is remembered depends on all three, told apart.
func TestProof(t *testing.T) {
	v := NewVerifier()
	seen := map[Proof]string{}
	for _, c := range [][3]string{{"h", "u", "p"}, {"h", "up", ""}, {"h", "", "up"}, {"hu", "", "p"}, {"", "hu", "p"}, {"g", "u", "p"}, {"h", "u", "q"}} {
		p := v.Proof([]byte(c[0]), c[1], c[2])
		if other, taken := seen[p]; taken {
			t.Errorf("%q is %s", c, other)
		}
		seen[p] = fmt.Sprintf("%q", c)
	}
	if NewVerifier().Proof([]byte("h"), "u", "p") == v.Proof([]byte("h"), "u", "p") {
		t.Error("another process finds the same")
	}
}
