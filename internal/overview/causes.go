package overview

import (
	"cmp"
	"slices"

	"robotsgate/proxy"
)

// A Cause is how many requests of the last hour had no decision for one reason.
type Cause struct {
	Kind     string `json:"kind"` // a [proxy.Refusal], or failed
	Requests uint64 `json:"requests"`
}

const (
	// Login is the kind of requests from clients that are none of the crawlers.
	Login = string(proxy.ByLogin)
	// Failed is the kind of requests that the gate did not refuse: the name did not resolve, or
	// the client has disconnected.
	Failed = "failed"
)

// kinds are those of requests without a decision. The last counts all that the others do not.
var kinds = [...]string{
	string(proxy.ByGuard), Login, string(proxy.ByLimit), string(proxy.ByAudit), string(proxy.IsMalformed), Failed,
}

// kindOf returns the index in kinds for a request without a decision.
func kindOf(x *proxy.Record) int {
	if i := slices.Index(kinds[:], string(x.Refused)); i >= 0 {
		return i
	}
	return len(kinds) - 1
}

// causesOf returns the causes that have requests, the most frequent first.
func causesOf(n [len(kinds)]uint64) []Cause {
	all := []Cause{}
	for i, kind := range kinds {
		if n[i] > 0 {
			all = append(all, Cause{kind, n[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b Cause) int { return cmp.Compare(b.Requests, a.Requests) })
	return all
}
