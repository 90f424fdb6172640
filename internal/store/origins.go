package store

import (
	"context"
	"strings"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
)

// maxHosts bounds the hosts that one call of Disk.Origins looks at. That takes about 10 ms.
const maxHosts = 20_000

// Origins returns origins by the name of their host.
func (d *Disk) Origins(_ context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		all := rangesOf(tx.Bucket(recordsBucket), from)
		for looked := 0; ; looked++ {
			host, ok := all.first()
			if !ok {
				return nil
			}
			if len(origins) >= limit || looked == maxHosts {
				next = host
				return nil
			}
			for _, origin := range all.pass(host) {
				if strings.Contains(origin, contains) {
					origins = append(origins, origin)
				}
			}
		}
	})
	return origins, next, err
}

// hostOf returns the host of an origin, with its port.
func hostOf(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	return host
}

// ranges are the parts of the index in which the keys are in the order of their hosts: one for each
// scheme, for configured crawlers and for other clients.
type ranges []*hostRange

type hostRange struct {
	prefix string // of its keys
	scheme string
	cursor *bbolt.Cursor
	host   string // at the cursor
	ended  bool
}

// rangesOf returns the ranges of the records, from a host on.
func rangesOf(records *bbolt.Bucket, from string) (all ranges) {
	for _, scheme := range []string{"http://", "https://"} {
		for _, crawlers := range []bool{false, true} {
			r := &hostRange{prefix: policy.Scope{Origin: scheme, Crawlers: crawlers}.Key(), scheme: scheme, cursor: records.Cursor()}
			r.seek(from)
			all = append(all, r)
		}
	}
	return all
}

// seek goes to the first key with a host that is not before this one.
func (r *hostRange) seek(host string) {
	key, _ := r.cursor.Seek([]byte(r.prefix + host))
	rest, ok := strings.CutPrefix(string(key), r.prefix)
	r.host, _, _ = strings.Cut(rest, " ") // without a token
	r.ended = !ok
}

// first returns the first host of all ranges, if there is one.
func (all ranges) first() (host string, ok bool) {
	for _, r := range all {
		if !r.ended && (!ok || r.host < host) {
			host, ok = r.host, true
		}
	}
	return host, ok
}

// pass goes past a host, and returns its origins.
func (all ranges) pass(host string) (origins []string) {
	for _, r := range all {
		if r.ended || r.host != host {
			continue
		}
		if n := len(origins); n == 0 || origins[n-1] != r.scheme+host {
			origins = append(origins, r.scheme+host)
		}
		r.seek(host + "!") // which follows the space before a token, and precedes all that is in a host
	}
	return origins
}
