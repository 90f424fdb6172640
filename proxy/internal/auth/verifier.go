package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	maxVerdicts = 4096             // remembered right logins, and as many wrong ones
	maxWait     = 10 * time.Second // for a verdict
)

// ErrBusy is the error of a login that could not be verified in time.
var ErrBusy = errors.New("too many logins are being verified")

// A proof identifies a password hash, a user name and a password to be compared with the
// hash. It is keyed, so that it reveals nothing about them without the key.
type proof [sha256.Size]byte

// A Verifier compares passwords with bcrypt hashes, which is slow on purpose. It does so on
// at most half of the processors, in the order of its queue, and remembers the verdicts.
type Verifier struct {
	compare func(hash, password []byte) bool
	slots   int // comparisons at a time
	key     [32]byte

	mu    sync.Mutex
	right verdicts // apart from wrong, which clients without a login can fill
	wrong verdicts
	queue queue
}

// An attempt is one comparison, for all requests of one client with the same login.
type attempt struct {
	keys     [2]string // the client's address and the user name, which take turns
	proof    proof
	hash     []byte
	password string
	requests int // that wait for it
	running  bool
	stale    bool          // maxFresh others have arrived since
	done     chan struct{} // closed when holds or err is known
	holds    bool
	err      error
}

func (a *attempt) client() string { return a.keys[0] }
func (a *attempt) user() string   { return a.keys[1] }

// NewVerifier returns a Verifier that remembers nothing yet.
func NewVerifier() *Verifier {
	v := &Verifier{
		compare: func(hash, password []byte) bool { return bcrypt.CompareHashAndPassword(hash, password) == nil },
		slots:   max(1, runtime.GOMAXPROCS(0)/2),
		right:   verdicts{known: map[proof]bool{}},
		wrong:   verdicts{known: map[proof]bool{}},
	}
	rand.Read(v.key[:])
	return v
}

// Verify reports whether the login's password has this hash. The client is the address that
// the attempt counts for. The error is ErrBusy or the context's.
func (v *Verifier) Verify(ctx context.Context, client netip.Addr, hash []byte, l *Login) (bool, error) {
	p := v.proof(hash, l)
	v.mu.Lock()
	if holds, known := v.verdictLocked(p); known {
		v.mu.Unlock()
		return holds, nil
	}
	a := v.joinLocked(client.String(), p, hash, l)
	v.startLocked()
	v.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, ErrBusy)
	defer cancel()
	select {
	case <-a.done:
		return a.holds, a.err
	case <-ctx.Done():
		v.mu.Lock()
		defer v.mu.Unlock()
		if a.requests--; a.requests == 0 && !a.running {
			v.queue.remove(a) // no request waits for it
		}
		return false, context.Cause(ctx)
	}
}

// Comparisons returns how many passwords have been compared with a hash.
func (v *Verifier) Comparisons() (right, wrong int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.right.compared, v.wrong.compared
}

func (v *Verifier) proof(hash []byte, l *Login) proof {
	mac := hmac.New(sha256.New, v.key[:])
	for _, part := range [][]byte{hash, []byte(l.User), []byte(l.Password)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return proof(mac.Sum(nil))
}

// joinLocked returns the attempt to compare this login, which may be a new one. If too many wait, one of
// them ends with ErrBusy.
func (v *Verifier) joinLocked(client string, p proof, hash []byte, l *Login) *attempt {
	i := slices.IndexFunc(v.queue.attempts, func(a *attempt) bool { return a.proof == p && a.client() == client })
	if i < 0 {
		a := &attempt{keys: [2]string{client, l.User}, proof: p, hash: hash, password: l.Password, done: make(chan struct{})}
		if excess := v.queue.add(a); excess != nil {
			v.endLocked(excess, false, ErrBusy)
		}
		i = len(v.queue.attempts) - 1
	}
	a := v.queue.attempts[i]
	a.requests++
	return a
}

// startLocked begins as many comparisons as may run.
func (v *Verifier) startLocked() {
	for a := v.queue.next(v.slots); a != nil; a = v.queue.next(v.slots) {
		if holds, known := v.verdictLocked(a.proof); known { // compared for another client since
			v.endLocked(a, holds, nil)
			continue
		}
		go v.run(a)
	}
}

// run makes one comparison.
func (v *Verifier) run(a *attempt) {
	holds := v.compare(a.hash, []byte(a.password))
	v.mu.Lock()
	defer v.mu.Unlock()
	if holds {
		v.right.add(a.proof)
	} else {
		v.wrong.add(a.proof)
	}
	v.endLocked(a, holds, nil)
	v.startLocked()
}

// endLocked gives an attempt's result to the requests that wait for it.
func (v *Verifier) endLocked(a *attempt, holds bool, err error) {
	v.queue.remove(a)
	a.holds, a.err = holds, err
	close(a.done)
}

func (v *Verifier) verdictLocked(p proof) (holds, known bool) {
	return v.right.known[p], v.right.known[p] || v.wrong.known[p]
}

// verdicts are right or wrong logins.
type verdicts struct {
	known    map[proof]bool // at most maxVerdicts
	compared int64
}

// add adds a login, in place of a random one if there are too many.
func (s *verdicts) add(p proof) {
	s.compared++
	if len(s.known) >= maxVerdicts {
		for other := range s.known {
			delete(s.known, other)
			break
		}
	}
	s.known[p] = true
}
