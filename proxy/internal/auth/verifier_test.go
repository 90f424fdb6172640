package auth

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// newBench returns a Verifier with this many slots. Each comparison takes three seconds, and compared has the passwords.
func newBench(slots int) (v *Verifier, compared *[]string) {
	v, compared = NewVerifier(), new([]string)
	v.slots = make(chan struct{}, slots)
	v.compare = func(_, password []byte) bool {
		v.mu.Lock()
		*compared = append(*compared, string(password))
		v.mu.Unlock()
		time.Sleep(3 * time.Second) // fake clock
		return string(password) == "right"
	}
	return v, compared
}

// TestVerify: as many passwords are compared at a time as there are slots, each login once. A request waits for
// maxWait, or until it ends.
func TestVerify(t *testing.T) {
	hash := []byte("a hash")
	for _, c := range []struct {
		name      string
		slots     int
		passwords []string
		compared  int
		seconds   int
		busy      int // of the requests
	}{
		{"one", 1, []string{"right"}, 1, 3, 0},
		{"the same, many times", 1, []string{"right", "right", "wrong", "right", "wrong", "right"}, 2, 6, 0},
		{"one after the other", 1, []string{"a", "b", "right"}, 3, 9, 0},
		{"two at a time", 2, []string{"a", "b", "c", "right"}, 4, 6, 0},
		{"too many", 1, []string{"a", "b", "c", "d", "e"}, 4, 12, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, compared := newBench(c.slots)
			begun, busy := time.Now(), 0
			results := make(chan error)
			for _, password := range c.passwords {
				go func() {
					holds, err := v.Verify(t.Context(), hash, &Login{Password: password})
					if err == nil && holds != (password == "right") {
						t.Errorf("%s: %q holds: %v", c.name, password, holds)
					}
					results <- err
				}()
				synctest.Wait() // until it compares or waits
			}
			for range c.passwords {
				if errors.Is(<-results, ErrBusy) {
					busy++
				}
			}
			took := int(time.Since(begun) / time.Second)
			if len(*compared) != c.compared || took != c.seconds || busy != c.busy {
				t.Errorf("%s: compared %q in %d s, %d busy, want %d in %d s, %d busy", c.name, *compared, took, busy, c.compared, c.seconds, c.busy)
			}
		})
	}
}

// A request that ends does not wait, and its password is not compared.
func TestVerifyCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, compared := newBench(1)
		ctx, cancel := context.WithCancel(t.Context())
		go v.Verify(t.Context(), nil, &Login{Password: "first"})
		synctest.Wait()
		cancel()
		if _, err := v.Verify(ctx, nil, &Login{Password: "second"}); !errors.Is(err, context.Canceled) || len(*compared) != 1 {
			t.Errorf("got %v, compared %q", err, *compared)
		}
		time.Sleep(3 * time.Second) // until the first has been compared
	})
}

// The remembered results are bounded, wrong passwords displace no right ones, and a result is that of its hash.
func TestRemembered(t *testing.T) {
	v := NewVerifier()
	compared := 0
	v.compare = func(_, password []byte) bool { compared++; return string(password) == "right" }
	try := func(hash, password string) {
		t.Helper()
		if holds, err := v.Verify(t.Context(), []byte(hash), &Login{Password: password}); err != nil || holds != (password == "right") {
			t.Errorf("%s: %v, %v", password, holds, err)
		}
	}
	try("a hash", "right")
	for i := range maxWrong + 100 {
		try("a hash", fmt.Sprint(i))
	}
	before := compared
	try("a hash", "right")
	try("a hash", fmt.Sprint(maxWrong+99))
	if compared != before || len(v.wrong) > maxWrong {
		t.Errorf("%d compared again, %d wrong ones are remembered", compared-before, len(v.wrong))
	}
	try("a has", "hright") // the same letters in all
	if try("another hash", "right"); compared != before+2 {
		t.Errorf("%d compared for other hashes, want 2", compared-before)
	}
}
