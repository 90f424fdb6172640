package auth

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// How many attempts may wait.
const (
	maxWaiting          = 4096
	maxWaitingPerClient = 256
)

// A queue chooses which of the waiting attempts is next. A client that sends many wrong
// passwords must not delay other clients or other users:
//
//   - Clients and user names take turns, both in a fixed order: one turn goes to the next
//     client, the other to the next user name. So an attempt waits for two comparisons of
//     each other client, or two of each other user name, whichever is less.
//   - Among attempts of one client for one user name the latest is next. That user has one
//     password, so a client that tries many delays its own earlier attempts.
//   - A client has one comparison running.
//
// The Verifier's lock guards it.
type queue struct {
	waiting []*attempt // in order of arrival
	running []*attempt

	byUser     bool       // the next turn is a user name's
	lastClient netip.Addr // to have its turn
	lastUser   string
}

// next moves the attempt that is to be run now from waiting to running. It returns nil if
// there is none.
func (q *queue) next() *attempt {
	var best *attempt
	for _, a := range q.waiting {
		if !q.runs(a.client) && (best == nil || q.compare(a, best) <= 0) {
			best = a
		}
	}
	if best != nil {
		q.remove(best)
		q.running = append(q.running, best)
		q.byUser = !q.byUser
		q.lastClient, q.lastUser = best.client, best.user
	}
	return best
}

func (q *queue) runs(client netip.Addr) bool {
	return slices.ContainsFunc(q.running, func(a *attempt) bool { return a.client == client })
}

// compare says which of two attempts has its turn first.
func (q *queue) compare(a, b *attempt) int {
	client := compareTurns(a.client, b.client, q.lastClient, netip.Addr.Compare)
	user := compareTurns(a.user, b.user, q.lastUser, strings.Compare)
	if q.byUser {
		return cmp.Or(user, client)
	}
	return cmp.Or(client, user)
}

// compareTurns compares a and b in an order that begins behind last and ends with it.
func compareTurns[T any](a, b, last T, compare func(T, T) int) int {
	if aPassed, bPassed := compare(a, last) <= 0, compare(b, last) <= 0; aPassed != bPassed {
		if bPassed {
			return -1
		}
		return 1
	}
	return compare(a, b)
}

// add adds an attempt. If too many wait, it returns one that must not wait any longer: the
// oldest for the same user name, or else the oldest. If the attempt's client has too many, it
// is one of that client.
func (q *queue) add(added *attempt) (excess *attempt) {
	ofClient := slices.DeleteFunc(slices.Clone(q.waiting), func(a *attempt) bool { return a.client != added.client })
	var candidates []*attempt
	switch {
	case len(ofClient) >= maxWaitingPerClient:
		candidates = ofClient
	case len(q.waiting) >= maxWaiting:
		candidates = q.waiting
	}
	if len(candidates) > 0 {
		i := slices.IndexFunc(candidates, func(a *attempt) bool { return a.user == added.user })
		excess = candidates[max(i, 0)]
		q.remove(excess)
	}
	q.waiting = append(q.waiting, added)
	return excess
}

// remove takes an attempt out of the queue, and reports whether it waited.
func (q *queue) remove(a *attempt) bool {
	n := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(other *attempt) bool { return other == a })
	return len(q.waiting) < n
}

// finish is called when an attempt has been run.
func (q *queue) finish(a *attempt) {
	q.running = slices.DeleteFunc(q.running, func(other *attempt) bool { return other == a })
}
