package outcomes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
	"robotsgate/proxy"
)

// Failures collects what run says at its end about requests that were refused or have failed.
type Failures struct {
	Redact bool // leave out the values of queries

	mu       sync.Mutex
	refused  []string // the first ones
	more     int      // further ones
	failures map[string]int
}

const (
	maxRefused  = 5
	maxFailures = 20 // kinds
)

// Add adds a request that is over.
func (o *Failures) Add(x *proxy.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case x.Kind() != "" && len(o.refused) == maxRefused:
		o.more++
	case x.Kind() != "":
		o.refused = append(o.refused, o.refusal(x))
	case x.Error != "":
		if o.failures == nil {
			o.failures = map[string]int{}
		}
		if why := failure(x); o.failures[why] > 0 || len(o.failures) < maxFailures {
			o.failures[why]++
		}
	}
}

func (o *Failures) refusal(x *proxy.Record) string {
	url, what := x.URL, "denied"
	if o.Redact {
		url = audit.Redact(url)
	}
	if x.Refused == "" {
		what = "would be denied"
	}
	return fmt.Sprintf("%s: %s %s  %s", what, escape.Short(x.Method), escape.Short(url), escape.Short(x.Cause()))
}

// failure says in a few words why a request has failed, without its host.
func failure(x *proxy.Record) string {
	switch x.Fault {
	case "dns_error":
		return "name does not resolve"
	case "":
		why, _, _ := strings.Cut(x.Error, ": ")
		return escape.Short(why)
	}
	return strings.ReplaceAll(x.Fault, "_", " ")
}

// Refused returns a line for each of the first refused requests, and one for the number of the others.
func (o *Failures) Refused() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := slices.Clone(o.refused)
	if o.more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; log.requests: refused or --verbose shows a line for each", o.more))
	}
	return lines
}

// Failed returns a line for each reason for which requests have failed, the most frequent first.
func (o *Failures) Failed() (lines []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	reasons := slices.SortedFunc(maps.Keys(o.failures), func(a, b string) int {
		return cmp.Or(o.failures[b]-o.failures[a], strings.Compare(a, b))
	})
	for _, why := range reasons {
		lines = append(lines, fmt.Sprintf("%d failed: %s", o.failures[why], why))
	}
	return lines
}
