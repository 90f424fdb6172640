package proxy

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

// Bounds of a verifier.
const (
	maxTried         = 64               // different logins of one address that wait
	maxTriedInAll    = 1024             // of all addresses
	maxVerdicts      = 4096             // that are remembered, good and bad ones each
	verifierPatience = 10 * time.Second // for one login, waiting included
)

// errBusy says that a login could not be verified now.
var errBusy = errors.New("too many logins are being verified")

// A proof stands for a hash with a user name and a password to try on it. It tells
// nothing of them to whoever reads the gate's memory only.
type proof [sha256.Size]byte

// A verifier compares passwords with bcrypt hashes, which is slow on purpose: at
// most half of the processors do so at a time. Addresses take turns, so that
// whoever tries many passwords waits behind himself, and what has been compared once
// is remembered.
type verifier struct {
	compare func(hash, password []byte) bool
	slots   int // comparisons at a time
	key     [32]byte

	mu      sync.Mutex
	good    map[proof]bool // apart from the bad ones, which others can add to
	bad     map[proof]bool
	lines   map[netip.Addr]*line // of addresses that have something to be compared
	turns   []*line              // those with something waiting and nothing running, the next one first
	waiting int                  // trials in all lines
	running int
}

// A line is what one address wants compared.
type line struct {
	address netip.Addr
	trials  []*trial // waiting, the next one first
	running *trial
}

// A trial is one comparison, for all requests that wait for it.
type trial struct {
	proof          proof
	hash, password []byte
	asking         int           // requests that wait for it
	done           chan struct{} // closed when the rest is known
	holds          bool
	err            error
}

func newVerifier() *verifier {
	v := &verifier{
		compare: func(hash, password []byte) bool { return bcrypt.CompareHashAndPassword(hash, password) == nil },
		slots:   max(1, runtime.GOMAXPROCS(0)/2),
		good:    map[proof]bool{}, bad: map[proof]bool{}, lines: map[netip.Addr]*line{},
	}
	rand.Read(v.key[:])
	return v
}

// proof returns what a comparison is remembered by.
func (v *verifier) proof(hash []byte, user, password string) (p proof) {
	mac := hmac.New(sha256.New, v.key[:])
	for _, part := range [][]byte{hash, []byte(user), []byte(password)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return proof(mac.Sum(nil))
}

// verify reports whether the password is that of the hash. The error is errBusy,
// also where verifierPatience was not enough, or ctx's.
func (v *verifier) verify(ctx context.Context, client netip.Addr, p proof, hash []byte, password string) (bool, error) {
	v.mu.Lock()
	if v.good[p] || v.bad[p] {
		defer v.mu.Unlock()
		return v.good[p], nil
	}
	l, t := v.join(household(client), p)
	if t == nil {
		v.mu.Unlock()
		return false, errBusy
	}
	if t.asking == 0 {
		t.hash, t.password = hash, []byte(password)
	}
	t.asking++
	v.dispatch()
	v.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, verifierPatience, errBusy)
	defer cancel()
	select {
	case <-t.done:
		return t.holds, t.err
	case <-ctx.Done():
		v.leave(l, t)
		return false, context.Cause(ctx)
	}
}

// join returns the trial of a proof in the line of an address, nil if there is no
// room. The caller holds mu.
func (v *verifier) join(address netip.Addr, p proof) (*line, *trial) {
	l := v.lines[address]
	if l == nil {
		l = &line{address: address}
	}
	if l.running != nil && l.running.proof == p {
		return l, l.running
	}
	if i := slices.IndexFunc(l.trials, func(t *trial) bool { return t.proof == p }); i >= 0 {
		return l, l.trials[i]
	}
	if len(l.trials) >= maxTried || v.waiting >= maxTriedInAll && !v.makeRoom(len(l.trials)) {
		return l, nil
	}
	t := &trial{proof: p, done: make(chan struct{})}
	if v.lines[address] = l; len(l.trials) == 0 && l.running == nil {
		v.turns = append(v.turns, l)
	}
	l.trials = append(l.trials, t)
	v.waiting++
	return l, t
}

// makeRoom sends away the last trial of the longest line, for the sake of one that
// would still be shorter. The caller holds mu.
func (v *verifier) makeRoom(length int) bool {
	var longest *line
	for _, l := range v.lines {
		if longest == nil || len(l.trials) > len(longest.trials) {
			longest = l
		}
	}
	if longest == nil || len(longest.trials) <= length+1 {
		return false
	}
	t := longest.trials[len(longest.trials)-1]
	v.remove(longest, t)
	t.err = errBusy
	close(t.done)
	return true
}

// remove takes a waiting trial out of its line. The caller holds mu.
func (v *verifier) remove(l *line, t *trial) {
	l.trials = slices.DeleteFunc(l.trials, func(other *trial) bool { return other == t })
	v.waiting--
	if len(l.trials) > 0 || l.running != nil {
		return
	}
	delete(v.lines, l.address)
	v.turns = slices.DeleteFunc(v.turns, func(other *line) bool { return other == l })
}

// leave gives up a trial for one request. Without any it is not begun.
func (v *verifier) leave(l *line, t *trial) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.asking--; t.asking == 0 && slices.Contains(l.trials, t) {
		v.remove(l, t)
	}
}

// dispatch begins what may be begun. The caller holds mu.
func (v *verifier) dispatch() {
	for v.running < v.slots && len(v.turns) > 0 {
		l := v.turns[0]
		v.turns = v.turns[1:]
		l.running, l.trials = l.trials[0], l.trials[1:]
		v.waiting--
		v.running++
		go v.run(l, l.running)
	}
}

// run does one comparison, unless another address has had it done meanwhile.
func (v *verifier) run(l *line, t *trial) {
	v.mu.Lock()
	holds, known := v.good[t.proof], v.good[t.proof] || v.bad[t.proof]
	v.mu.Unlock()
	if !known {
		holds = v.compare(t.hash, t.password)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	t.holds = holds
	close(t.done)
	if holds {
		remember(v.good, t.proof)
	} else {
		remember(v.bad, t.proof)
	}
	v.running--
	if l.running = nil; len(l.trials) > 0 {
		v.turns = append(v.turns, l) // behind all others
	} else {
		delete(v.lines, l.address)
	}
	v.dispatch()
}

// remember adds a verdict, in place of any other where there are many.
func remember(verdicts map[proof]bool, p proof) {
	if len(verdicts) >= maxVerdicts {
		for other := range verdicts {
			delete(verdicts, other)
			break
		}
	}
	verdicts[p] = true
}
