package auth

import (
	"cmp"
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
	maxTried         = 256              // different logins of one address that wait
	maxTriedInAll    = 4096             // of all addresses
	maxVerdicts      = 4096             // that are remembered, good and bad ones each
	verifierPatience = 10 * time.Second // for one login, waiting included
)

// ErrBusy says that a login could not be verified now.
var ErrBusy = errors.New("too many logins are being verified")

// A Proof stands for a hash with a user name and a password to try on it. It tells
// nothing of them to whoever reads the gate's memory only.
type Proof [sha256.Size]byte

// A Verifier compares passwords with bcrypt hashes, which is slow on purpose: at
// most half of the processors do so at a time. Addresses and user names take turns,
// so that whoever tries many passwords waits behind himself, and who tries those of one
// user from many addresses behind the other users. What has been compared once is
// remembered.
type Verifier struct {
	Compare func(hash, password []byte) bool
	slots   int // comparisons at a time
	key     [32]byte

	mu      sync.Mutex
	good    map[Proof]bool // apart from the bad ones, which others can add to
	bad     map[Proof]bool
	lines   map[netip.Addr]*line // of addresses that have something to be compared
	turns   []*line              // those with something waiting and nothing running, the next one first
	waiting int                  // trials in all lines
	names   map[string]int       // of these, by user name
	running int

	right, wrong int64 // comparisons that came to an end

	begun  int            // comparisons
	served map[string]int // user names that others wait behind, with begun as of their last turn
}

// A line is what one address wants compared.
type line struct {
	address netip.Addr
	trials  []*trial // waiting, by rank
	running *trial
}

// An Attempt is one request's wish to have a login compared.
type Attempt struct {
	Client         netip.Addr // or what stands for all addresses of one client
	Proof          Proof
	Hash           []byte
	User, Password string
	Failures       int // of other attempts that came by the same connection
}

// A trial is one comparison, for all requests that wait for it.
type trial struct {
	Attempt
	rank   int           // in its line: less goes first
	asking int           // requests that wait for it
	done   chan struct{} // closed when the rest is known
	holds  bool
	err    error
}

func NewVerifier() *Verifier {
	v := &Verifier{
		Compare: func(hash, password []byte) bool { return bcrypt.CompareHashAndPassword(hash, password) == nil },
		slots:   max(1, runtime.GOMAXPROCS(0)/2),
		good:    map[Proof]bool{}, bad: map[Proof]bool{}, lines: map[netip.Addr]*line{}, names: map[string]int{}, served: map[string]int{},
	}
	rand.Read(v.key[:])
	return v
}

// Proof returns what a comparison is remembered by.
func (v *Verifier) Proof(hash []byte, user, password string) (p Proof) {
	mac := hmac.New(sha256.New, v.key[:])
	for _, part := range [][]byte{hash, []byte(user), []byte(password)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return Proof(mac.Sum(nil))
}

// Verify reports whether the password is that of the hash. The error is ErrBusy,
// also where verifierPatience was not enough, or ctx's.
func (v *Verifier) Verify(ctx context.Context, a Attempt) (bool, error) {
	v.mu.Lock()
	if v.good[a.Proof] || v.bad[a.Proof] {
		defer v.mu.Unlock()
		return v.good[a.Proof], nil
	}
	l, t := v.join(a)
	if t == nil {
		v.mu.Unlock()
		return false, ErrBusy
	}
	t.asking++
	v.dispatch()
	v.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, verifierPatience, ErrBusy)
	defer cancel()
	select {
	case <-t.done:
		return t.holds, t.err
	case <-ctx.Done():
		v.leave(l, t)
		return false, context.Cause(ctx)
	}
}

// Compared returns how many comparisons there have been.
func (v *Verifier) Compared() (right, wrong int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.right, v.wrong
}

// join returns the trial of an attempt in the line of its address, nil if there is no
// room. The caller holds mu.
func (v *Verifier) join(a Attempt) (*line, *trial) {
	address := a.Client
	l := v.lines[address]
	if l == nil {
		l = &line{address: address}
	}
	if l.running != nil && l.running.Proof == a.Proof {
		return l, l.running
	}
	if i := slices.IndexFunc(l.trials, func(t *trial) bool { return t.Proof == a.Proof }); i >= 0 {
		return l, l.trials[i]
	}
	// Many clients may share an address: user names take turns in it. One name has one
	// password, so of those that are tried for it the latest goes first: who tries many
	// pushes his own back. Who has been wrong before goes behind those who have not.
	rank := a.Failures
	if !v.hasRoom(l, a) {
		return l, nil
	}
	for _, t := range l.trials {
		if t.User == a.User && t.rank >= rank {
			t.rank++
		}
	}
	t := &trial{Attempt: a, rank: rank, done: make(chan struct{})}
	if v.lines[address] = l; len(l.trials) == 0 && l.running == nil {
		v.turns = append(v.turns, l)
	}
	l.trials = append(l.trials, t)
	slices.SortStableFunc(l.trials, func(a, b *trial) int { return cmp.Compare(a.rank, b.rank) })
	v.waiting++
	v.names[t.User]++
	return l, t
}

// hasRoom reports whether one more may wait in a line, if need be in place of one
// that is worse. The caller holds mu.
func (v *Verifier) hasRoom(l *line, a Attempt) bool {
	switch {
	case len(l.trials) < maxTried && v.waiting < maxTriedInAll:
		return true
	case len(l.trials) > 0 && l.trials[len(l.trials)-1].rank > a.Failures:
		v.sendAway(l, l.trials[len(l.trials)-1])
		return true
	}
	return len(l.trials) < maxTried && v.makeRoom(len(l.trials), a.User)
}

// makeRoom sends away the last trial of the longest line, for the sake of one that
// would still be shorter; or else one for the user name that most are for, for the sake
// of a name with fewer. The caller holds mu.
func (v *Verifier) makeRoom(length int, user string) bool {
	var longest *line
	for _, l := range v.lines {
		if longest == nil || len(l.trials) > len(longest.trials) {
			longest = l
		}
	}
	if longest != nil && len(longest.trials) > length+1 {
		v.sendAway(longest, longest.trials[len(longest.trials)-1])
		return true
	}
	most := user
	for name, n := range v.names {
		if n > v.names[most] {
			most = name
		}
	}
	if v.names[most] <= v.names[user]+1 {
		return false
	}
	for _, l := range v.lines {
		if i := slices.IndexFunc(l.trials, func(t *trial) bool { return t.User == most }); i >= 0 {
			v.sendAway(l, l.trials[i])
			return true
		}
	}
	return false
}

// sendAway ends a trial that waits in a line unbegun. The caller holds mu.
func (v *Verifier) sendAway(l *line, t *trial) {
	v.remove(l, t)
	t.err = ErrBusy
	close(t.done)
}

// remove takes a waiting trial out of its line. The caller holds mu.
func (v *Verifier) remove(l *line, t *trial) {
	l.trials = slices.DeleteFunc(l.trials, func(other *trial) bool { return other == t })
	v.waitsNot(t)
	if len(l.trials) > 0 || l.running != nil {
		return
	}
	delete(v.lines, l.address)
	v.turns = slices.DeleteFunc(v.turns, func(other *line) bool { return other == l })
}

// waitsNot notes that a trial does not wait any more. The caller holds mu.
func (v *Verifier) waitsNot(t *trial) {
	v.waiting--
	if v.names[t.User]--; v.names[t.User] == 0 {
		delete(v.names, t.User)
	}
}

// leave gives up a trial for one request. Without any it is not begun.
func (v *Verifier) leave(l *line, t *trial) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.asking--; t.asking == 0 && slices.Contains(l.trials, t) {
		v.remove(l, t)
	}
}

// dispatch begins what may be begun. The caller holds mu.
func (v *Verifier) dispatch() {
	for v.running < v.slots && len(v.turns) > 0 {
		// Now the address counts, now the user name: a newcomer waits for twice the
		// number of the others' addresses or that of their names, whichever is less.
		i, j := 0, 0
		if v.begun++; v.begun%2 == 0 {
			i, j = v.nextName()
		}
		l := v.turns[i]
		t := l.trials[j]
		v.turns = slices.Delete(v.turns, i, i+1)
		l.running, l.trials = t, slices.Delete(l.trials, j, j+1)
		v.served[t.User] = v.begun
		v.waitsNot(t)
		v.running++
		go v.run(l, t)
	}
	if v.waiting+v.running == 0 {
		clear(v.served)
	}
}

// nextName returns where in turns, and where in that line, the best trial is for the
// user name whose turn was the longest ago. The caller holds mu.
func (v *Verifier) nextName() (line, place int) {
	best := v.turns[0].trials[0]
	for i, l := range v.turns {
		for j, t := range l.trials {
			if cmp.Or(cmp.Compare(v.served[t.User], v.served[best.User]), cmp.Compare(t.rank, best.rank)) < 0 {
				best, line, place = t, i, j
			}
		}
	}
	return line, place
}

// run does one comparison, unless another address has had it done meanwhile.
func (v *Verifier) run(l *line, t *trial) {
	v.mu.Lock()
	holds, known := v.good[t.Proof], v.good[t.Proof] || v.bad[t.Proof]
	v.mu.Unlock()
	if !known {
		holds = v.Compare(t.Hash, []byte(t.Password))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case known:
	case holds:
		v.right++
	default:
		v.wrong++
	}
	t.holds = holds
	close(t.done)
	if holds {
		remember(v.good, t.Proof)
	} else {
		remember(v.bad, t.Proof)
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
func remember(verdicts map[Proof]bool, p Proof) {
	if len(verdicts) >= maxVerdicts {
		for other := range verdicts {
			delete(verdicts, other)
			break
		}
	}
	verdicts[p] = true
}
