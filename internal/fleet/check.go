package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// A Finding is the result of one check of a fleet's store.
type Finding struct {
	Subject string
	OK      bool
	Text    string
	Advice  string // what to do if it is not OK
}

// checkTime bounds one call of Check. A store that answers later than Options.Timeout is a finding of its
// own, so Check waits longer.
const checkTime = 5 * time.Second

// Check tries what a gate needs of the store: it connects, compares the key with that of the other gates, and runs every
// script with keys of its own. It needs Address, Roots, Key, Prefix and Timeout.
func Check(ctx context.Context, o Options) []Finding {
	o.Log = slog.New(slog.DiscardHandler) // what it would say are findings
	f, err := Open(o)
	if err != nil {
		return []Finding{{Subject: "store", Text: err.Error()}}
	}
	defer f.Close()
	f.server.roots = func() *x509.CertPool { return o.Roots }
	var took time.Duration
	err = f.server.connect()
	if err == nil {
		err = f.link.try(ctx, checkTime, func(ctx context.Context) error {
			_, _, _ = f.list(ctx, "gates", "", gateTime) // the first call sends the script
			begin := time.Now()
			f.rejected.Store(0)
			gates, _, err := f.list(ctx, "gates", "", gateTime)
			took = time.Since(begin)
			f.gates.Store(int64(len(gates)))
			return err
		})
	}
	if err != nil {
		return []Finding{{"store", false, fmt.Sprintf("%s: %v", f.address, err), f.remedy(err)}}
	}
	store := Finding{"store", took <= o.Timeout, fmt.Sprintf("%s, answers in %.1f ms", f.address, took.Seconds()*1000), ""}
	if !store.OK {
		store.Advice = fmt.Sprintf("use a store that is nearer, or a longer fleet.timeout than %v: a gate gives up the store when one answer takes longer", o.Timeout)
	}
	key := Finding{"key", true, fmt.Sprintf("the same as that of the gates that are there: %d", f.gates.Load()), ""}
	if rejected := f.rejected.Load(); rejected > 0 {
		key = Finding{"key", false, fmt.Sprintf("gates whose key is another: %d", rejected), "give all gates the same fleet.key_file, and restart them; two fleets in one store need a fleet.prefix each"}
	}
	return append([]Finding{store, key}, f.permissions(ctx))
}

// permissions runs every script.
func (f *Fleet) permissions(ctx context.Context) Finding {
	name := f.key("doctor", rand.Text())
	const ttl, size = "10000", "1000"
	var first error
	var failed []string
	for _, t := range []struct {
		name, key string
		script    *rueidis.Lua
		args      []string
		least     int
	}{
		{"save", "value", saveScript, []string{"", "text", ttl, size}, 1},
		{"load", "value", loadScript, []string{size}, 3},
		{"acquire", "lease", acquireScript, []string{"me", ttl}, 1},
		{"release", "lease", releaseScript, []string{"me"}, 1},
		{"reserve", "starts", reserveScript, []string{micros(time.Second), "1", "0", "0", "-1", micros(time.Second), micros(time.Second), "0", "0"}, 3},
		{"list", "list", listScript, []string{"member", micros(time.Second), "1"}, 1},
	} {
		err := f.link.try(ctx, checkTime, func(ctx context.Context) error {
			_, err := f.server.call(ctx, t.least, t.script, name+t.key, t.args...)
			return err
		})
		if err != nil {
			first = cmp.Or(first, err)
			failed = append(failed, t.name)
		}
	}
	if first == nil {
		return Finding{"permissions", true, "all scripts run", ""}
	}
	return Finding{"permissions", false, fmt.Sprintf("scripts that fail: %s; the first: %v", strings.Join(failed, ", "), first), f.remedy(first)}
}

// remedy returns what to do about an error of the store, or of the way to it.
func (f *Fleet) remedy(err error) string {
	if errors.Is(err, errAnswer) {
		return "use Valkey, or Redis 7.0 or later; a proxy between must pass scripts on as they are"
	}
	text := advice(err)
	if text == advices["NOPERM"] {
		text += ": ACL SETUSER NAME " + Rights(f.prefix) + ", and a few more for Sentinels, a Cluster or a database"
	}
	return text
}

// Rights returns the least rights of the store's user, as for ACL SETUSER.
func Rights(prefix string) string {
	return "resetkeys ~" + prefix + ":* resetchannels -@all " + rights
}

// rights are the commands that the client sends, and those in the scripts. A Cluster needs asking, cluster|slots and
// cluster|shards too, a primary that Sentinels watch role.
const rights = "+del +eval +evalsha +get +getrange +pexpire +ping +pttl +set +strlen +time +zadd +zremrangebyscore +zrevrange"
