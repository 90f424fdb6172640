package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"robotsgate/policy/snapshot"
)

// Body returns the file with a SHA-256. The error is fs.ErrNotExist if it is not kept, and snapshot.ErrChanged if it does
// not match its name.
func (x *Reader) Body(digest string) (string, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	text := bodyID(digest)
	keys := slices.Values(x.named[text])
	if x.named == nil {
		keys = maps.Keys(x.records)
	}
	err := fmt.Errorf("%q is no SHA-256 of a file that is kept: %w", digest, fs.ErrNotExist)
	for key := range keys { // one of several may be damaged, or have the same id by chance
		r := x.records[key]
		if r.text != text || text == 0 {
			continue
		}
		body, failed := x.read(r, &struct{}{})
		switch got := snapshot.Digest(body); {
		case failed != nil:
			err = failed
		case got == digest:
			return string(body), nil
		case bodyID(got) != text:
			err = snapshot.ErrChanged
		}
	}
	return "", err
}

// History returns the answers of an origin to requests for its robots.txt, the oldest first.
func (x *Reader) History(origin string) ([]snapshot.Answer, error) {
	return x.history(snapshot.Scope{Origin: origin})
}

// TDMRepHistory returns those to requests for its tdmrep.json.
func (x *Reader) TDMRepHistory(origin string) ([]snapshot.Answer, error) {
	return x.history(snapshot.Scope{Origin: origin, TDMRep: true})
}

// history returns the answers about a file, whichever clients they are for.
func (x *Reader) history(file snapshot.Scope) (all []snapshot.Answer, err error) {
	x.mu.RLock() // throughout, or else an answer that is superseded meanwhile would be missing
	defer x.mu.RUnlock()
	key := idOf(file.Key())
	for _, s := range slices.Concat(x.answers[key], x.answers[^key]) {
		r, ok := x.records[s.key]
		if !ok || s.at <= x.expired() {
			continue
		}
		var a answerLine
		a.Bytes, r.body = int64(r.body), 0 // of which many are not read for this
		if _, err := x.read(r, &a); err != nil {
			return nil, err
		}
		if scope := snapshot.ParseKey(a.Key); scope.Origin == file.Origin {
			a.Asker = scope.Asker
			all = append(all, a.Answer)
		}
	}
	sets, err := x.setsOf(key)
	if err != nil {
		return nil, err
	}
	for _, key := range sets {
		set, err := x.load(key)
		if err != nil {
			return nil, err
		}
		scope := snapshot.ParseKey(set.Key)
		if scope.Origin != file.Origin || scope.TDMRep != file.TDMRep {
			continue
		}
		for _, a := range set.InForce() {
			a.Asker = scope.Asker
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b snapshot.Answer) int { return a.From.Compare(b.From) })
	return all, nil
}

// setsOf returns the keys of the sets of a file, one for each asker. The caller holds mu.
func (x *Reader) setsOf(file id) (keys []id, err error) {
	if x.sets != nil {
		return x.sets[file], nil
	}
	for _, s := range x.segments {
		err = errors.Join(err, s.scan(func(it item) bool {
			if it.file == file && it.kind != answer && x.records[it.key].place == it.place {
				keys = append(keys, it.key)
			}
			return true
		}))
	}
	return keys, err
}

// HostOrigins returns the origins of a host, on all ports, of which there are answers. They are sorted.
func (x *Reader) HostOrigins(host string) ([]string, error) {
	found, wanted, expired := map[string]bool{}, idOf(host), x.expired()
	err := x.keys(func(it *item) bool {
		return it.host == wanted && (it.kind != answer || it.at > expired)
	}, func(key string) { found[snapshot.ParseKey(key).Origin] = true })
	return slices.Sorted(maps.Keys(found)), err
}

// keys calls f with the keys of wanted records. One that can't be read is left out.
func (x *Reader) keys(wanted func(*item) bool, f func(key string)) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.segments {
		err := s.scan(func(it item) bool {
			if !wanted(&it) || x.records[it.key].place != it.place {
				return true
			}
			it.body = 0
			var line struct{ Key string }
			if _, err := x.read(it.record, &line); err == nil {
				f(line.Key)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}
