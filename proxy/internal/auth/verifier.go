package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	maxWrong = 4096             // remembered logins that were wrong
	maxWait  = 10 * time.Second // for the beginning of a comparison
)

// ErrBusy is the error of a login that could not be verified in time.
var ErrBusy = errors.New("too many logins are being verified")

// A proof identifies a password and the hash that it was compared with. It is keyed, so that it reveals nothing about
// them without the key.
type proof [sha256.Size]byte

// A Verifier compares passwords with bcrypt hashes, which is slow on purpose. It does so on at most half of the
// processors, and remembers the results.
type Verifier struct {
	compare func(hash, password []byte) bool
	slots   chan struct{} // has an element for each comparison
	key     [32]byte

	mu    sync.Mutex
	right map[proof]bool // at most one for each hash of the configurations
	wrong map[proof]bool // apart from right, since clients without a login can fill it
}

// NewVerifier returns a Verifier that remembers nothing yet.
func NewVerifier() *Verifier {
	v := &Verifier{
		compare: func(hash, password []byte) bool { return bcrypt.CompareHashAndPassword(hash, password) == nil },
		slots:   make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		right:   map[proof]bool{},
		wrong:   map[proof]bool{},
	}
	rand.Read(v.key[:])
	return v
}

// Verify reports whether the login's password has this hash. The error is ErrBusy or the context's.
func (v *Verifier) Verify(ctx context.Context, hash []byte, l *Login) (bool, error) {
	p := v.proof(hash, l)
	if holds, known := v.verdict(p); known {
		return holds, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, ErrBusy)
	defer cancel()
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if holds, known := v.verdict(p); known { // compared for another request since
		return holds, nil
	}
	holds := v.compare(hash, []byte(l.Password))
	v.remember(p, holds)
	return holds, nil
}

func (v *Verifier) proof(hash []byte, l *Login) proof {
	mac := hmac.New(sha256.New, v.key[:])
	fmt.Fprintf(mac, "%q %q", hash, l.Password)
	return proof(mac.Sum(nil))
}

func (v *Verifier) verdict(p proof) (holds, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.right[p], v.right[p] || v.wrong[p]
}

func (v *Verifier) remember(p proof, holds bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if holds {
		v.right[p] = true
		return
	}
	if len(v.wrong) >= maxWrong {
		clear(v.wrong)
	}
	v.wrong[p] = true
}
