package auth

import (
	"cmp"
	"slices"
	"strings"
)

// How many attempts may wait.
const (
	maxWaiting          = 4096
	maxWaitingPerClient = 256
)

// maxFresh is how many attempts of one client for one user name are fresh.
const maxFresh = 8

// A queue has the attempts that wait or run, and chooses the next one to run. A client that sends
// many wrong passwords must not delay other clients or other users:
//
//   - Clients and user names take turns, both in a fixed order: one turn goes to the next
//     client, the other to the next user name. So an attempt waits for two comparisons of
//     each other client, or two of each other user name, whichever is less.
//   - Of one client's attempts for one user name the last maxFresh to arrive are fresh, and are
//     run in order of arrival. The others follow, the latest first. So an attempt waits for
//     fewer than maxFresh others, unless maxFresh more arrive before its turn: a client that
//     waits for responses sends one for each comparison.
//   - A client has one comparison running.
//
// The Verifier's lock guards it.
type queue struct {
	attempts []*attempt // in order of arrival
	turn     int        // kind of key that is compared first for the next turn: an index into attempt.keys
	last     [2]string  // the client and the user name that had the last turn
}

// next marks the attempt to run now as running, and returns it: nil if slots attempts are
// running, or no other may run.
func (q *queue) next(slots int) (best *attempt) {
	running := map[string]bool{} // clients
	for _, a := range q.attempts {
		if a.running {
			running[a.client()] = true
		}
	}
	if len(running) >= slots {
		return nil
	}
	for _, a := range q.attempts {
		if running[a.client()] {
			continue
		}
		if best == nil {
			best = a
			continue
		}
		byTurn := func(i int) int { return compareTurns(a.keys[i], best.keys[i], q.last[i]) }
		turn := cmp.Or(byTurn(q.turn), byTurn(1-q.turn))
		if turn < 0 || turn == 0 && best.stale { // a has arrived later, and may be fresh
			best = a
		}
	}
	if best != nil {
		best.running = true
		q.turn, q.last = 1-q.turn, best.keys
	}
	return best
}

// compareTurns compares a and b in an order that begins behind last and ends with it.
func compareTurns(a, b, last string) int {
	switch {
	case a > last && b <= last:
		return -1
	case a <= last && b > last:
		return 1
	}
	return strings.Compare(a, b)
}

// add adds an attempt. If too many wait, it returns one that must not wait any longer: the
// oldest for the same user name, or else the oldest. If the attempt's client has too many, it
// is one of that client.
func (q *queue) add(added *attempt) (excess *attempt) {
	var waiting, ofClient, fresh []*attempt
	for _, a := range q.attempts {
		if a.running {
			continue
		}
		waiting = append(waiting, a)
		if a.client() == added.client() {
			ofClient = append(ofClient, a)
		}
		if a.keys == added.keys && !a.stale {
			fresh = append(fresh, a)
		}
	}
	if len(fresh) >= maxFresh {
		fresh[0].stale = true
	}
	q.attempts = append(q.attempts, added)
	if len(ofClient) >= maxWaitingPerClient {
		waiting = ofClient
	} else if len(waiting) < maxWaiting {
		return nil
	}
	i := slices.IndexFunc(waiting, func(a *attempt) bool { return a.user() == added.user() })
	return waiting[max(i, 0)]
}

// remove takes an attempt out of the queue.
func (q *queue) remove(a *attempt) {
	q.attempts = slices.DeleteFunc(q.attempts, func(other *attempt) bool { return other == a })
}
