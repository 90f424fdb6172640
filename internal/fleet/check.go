package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Finding is the result of one check of a fleet's store.
type Finding struct {
	Subject string
	Verdict Verdict
	Text    string
	Advice  []string // what to do, if it has not passed
}

// A Verdict is the result of a check in a word.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	Warned Verdict = "warned" // the gate works, but needs attention
	Failed Verdict = "failed"
)

// checkTime bounds one call of Check. A store that answers later than Options.Timeout is a finding of its
// own, so Check waits longer.
const checkTime = 5 * time.Second

// Check tries what a gate needs of the store: it connects, runs every script with keys of its own, and
// reads what other gates announce. It needs Address, Roots, Key, Prefix and Timeout.
func Check(ctx context.Context, o Options) []Finding {
	s, err := newSealer(o.Key, o.Prefix)
	if err != nil {
		return []Finding{{Subject: "key", Verdict: Failed, Text: err.Error()}}
	}
	a, err := parseAddress(o.Address)
	if err != nil {
		return []Finding{{Subject: "store", Verdict: Failed, Text: err.Error()}}
	}
	server, err := checked(ctx, func(ctx context.Context) (*redisServer, error) {
		return dial(ctx, string(o.Address), o.Roots, o.Prefix, 2*checkTime) // the time of ctx ends first
	})
	if err != nil {
		return []Finding{{Subject: "store", Verdict: Failed, Text: fmt.Sprintf("%s: %v", a, err), Advice: remedy(err, a, o.Prefix)}}
	}
	defer server.close()
	c := &checker{options: o, sealer: s, server: server, address: a}
	findings := c.state(ctx)
	return append(findings, c.permissions(ctx))
}

// checked calls f with a time limit. If that has ended, the error says so: f's own may be that of a connection
// that was closed then.
func checked[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	v, err := f(limited)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v", checkTime)
	}
	return v, err
}

// A checker checks a store that answers.
type checker struct {
	options Options
	sealer  *sealer
	server  *redisServer
	address address
}

// state checks the version, the clock, the time of a call, and the announcements of other gates.
func (c *checker) state(ctx context.Context) []Finding {
	store := Finding{Subject: "store", Verdict: Passed, Text: c.address.String()}
	var took, difference time.Duration
	got, err := checked(ctx, func(ctx context.Context) (got [][]byte, err error) {
		for range 3 { // the first call sends the script
			begin := time.Now()
			if got, err = c.server.list(ctx, 2, checkScript, []string{c.server.fleet + "g"}); err != nil {
				return nil, err
			}
			took = time.Since(begin)
			if len(got)%2 != 0 {
				return nil, errAnswer
			}
			micros, err := number(got[1])
			if err != nil {
				return nil, err
			}
			difference = begin.Add(took / 2).Sub(time.UnixMicro(micros))
		}
		return got, nil
	})
	if errors.Is(err, errWrongType) {
		got, err = [][]byte{[]byte("nil"), nil}, nil // the next announcement replaces it
	}
	if err != nil {
		store.Verdict, store.Text, store.Advice = Failed, fmt.Sprintf("%s: %v", c.address, err), remedy(err, c.address, c.options.Prefix)
		return []Finding{store}
	}
	store.Text += fmt.Sprintf(", answers in %.1f ms", took.Seconds()*1000)
	if took > c.options.Timeout/2 {
		if store.Verdict = Warned; took > c.options.Timeout {
			store.Verdict = Failed
		}
		store.Text += fmt.Sprintf("; fleet.timeout is %v", c.options.Timeout)
		store.Advice = []string{"use a store that is nearer, or a longer fleet.timeout: a gate gives up the store when one answer takes longer"}
	}
	return []Finding{store, version(string(got[0])), clock(difference), c.gates(got[2:])}
}

// version judges the version of Redis that the store is compatible with. Before 7.0 scripts have none.
func version(text string) Finding {
	if text == "nil" {
		return Finding{Subject: "version", Verdict: Failed, Text: "older than Redis 7.0, or not compatible with it", Advice: []string{"use Valkey, or Redis 7.0 or later"}}
	}
	return Finding{Subject: "version", Verdict: Passed, Text: "compatible with Redis " + text[:min(len(text), 20)]}
}

// clock judges the difference of this machine's clock to the store's.
func clock(difference time.Duration) Finding {
	word := "ahead of"
	if difference < 0 {
		word = "behind"
	}
	f := Finding{Subject: "clock", Verdict: Passed, Text: fmt.Sprintf("%.3f s %s the store's", difference.Abs().Seconds(), word)}
	if difference.Abs() > maxSkew {
		f.Verdict, f.Advice = Warned, []string{"synchronise the clocks of this machine and of the store, as with chrony: a gate rejects values that are a minute from the future"}
	}
	if difference.Abs() > maxAhead {
		f.Verdict = Failed
	}
	return f
}

// gates judges the announcements of other gates, which are ids and sealed values. Old ones are of gates
// that have ended.
func (c *checker) gates(all [][]byte) Finding {
	var known []string
	rejected := 0
	for pair := range slices.Chunk(all, 2) {
		// As the script announce stores it: a time, a space, and what the gate has sealed.
		_, value, _ := bytes.Cut(pair[1], []byte(" "))
		if _, _, err := c.sealer.open(string(pair[0]), kindGate, value); err != nil {
			rejected++
			continue
		}
		known = append(known, string(pair[0]))
	}
	slices.Sort(known)
	f := Finding{Subject: "key", Verdict: Passed, Text: "no other gate is there to compare it with"}
	switch {
	case rejected > 0:
		f.Verdict, f.Text = Failed, fmt.Sprintf("announcements that this key does not authenticate: %d, of %d", rejected, rejected+len(known))
		f.Advice = []string{"give all gates the same fleet.key_file, and restart them; two fleets in one store need a fleet.prefix each"}
	case len(known) > 0:
		f.Text = fmt.Sprintf("the same as that of %d gates: %s", len(known), strings.Join(known[:min(len(known), 10)], ", "))
		if len(known) == 1 {
			f.Text = "the same as that of one gate: " + known[0]
		}
	}
	return f
}

// permissions runs every script.
func (c *checker) permissions(ctx context.Context) Finding {
	var first error
	var failed []string
	for _, t := range trials(c.server, c.sealer) {
		if _, err := checked(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, t.run(ctx) }); err != nil {
			first = cmp.Or(first, err)
			failed = append(failed, t.script)
		}
	}
	if first == nil {
		return Finding{Subject: "permissions", Verdict: Passed, Text: "all scripts run, and read what they write"}
	}
	return Finding{Subject: "permissions", Verdict: Failed, Text: fmt.Sprintf("scripts that fail: %s; the first: %v", strings.Join(failed, ", "), first), Advice: remedy(first, c.address, c.options.Prefix)}
}

// remedy returns what to do about an error of the store, or of the way to it.
func remedy(err error, a address, prefix string) []string {
	if errors.Is(err, errMissing) || errors.Is(err, errAnswer) {
		return []string{"use Valkey, or Redis 7.0 or later; a proxy between must pass scripts on as they are"}
	}
	text := advice(err)
	if text == advices["NOPERM"] {
		text = "give the user these rights: ACL SETUSER NAME " + Rights(prefix)
		if strings.Contains(err.Error(), "cluster") || len(a.hosts) > 1 && a.sentinel == "" {
			text += " +cluster|slots +cluster|shards"
		}
		if a.database != 0 {
			text += " +select"
		}
	}
	return []string{text}
}

// Rights returns the least rights of the store's user, as for ACL SETUSER.
func Rights(prefix string) string {
	return "resetkeys ~" + prefix + ":* resetchannels -@all " + rights
}

// rights are the commands that the client sends, and those in the scripts. A Cluster needs
// asking, cluster|slots and cluster|shards too.
const rights = "+eval +evalsha +del +get +hdel +hget +hgetall +hset +hstrlen +pexpire +pttl +set +time +xadd +xrange +xrevrange"
