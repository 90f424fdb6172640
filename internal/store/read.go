package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"robotsgate/policy/snapshot"
)

// A setLine is the JSON of a set. Its Last is left out if it is Good, and its Body follows the line.
type setLine struct {
	Key string `json:"key"`
	snapshot.DatedSet
}

// An answerLine is the JSON of a superseded answer.
type answerLine struct {
	Key string `json:"key"` // of the set
	snapshot.Answer
}

// parse reads the JSON of a line that has this checksum.
func parse(line []byte, sum uint32, into any) error {
	if crc32.Checksum(line, castagnoli) != sum {
		return errors.New("a line does not match its checksum")
	}
	return json.Unmarshal(line, into)
}

// load returns the set of a key without its body, nil if there is none, and its body if that follows it on disk.
// The caller holds mu.
func (x *Reader) load(key string) (r *snapshot.DatedSet, body []byte, err error) {
	l, ok := x.lines[idOf(key)]
	if !ok {
		return nil, nil, nil
	}
	length := l.length
	if b := x.bodies[l.text]; b.place == (place{l.segment, l.offset + l.length}) { // both with one read
		length += b.length
	}
	data, err := x.segment(l.segment).read(l.offset, length)
	if err != nil {
		return nil, nil, err
	}
	var set setLine
	if err := parse(data[:l.length], l.sum, &set); err != nil || set.Key != key {
		return nil, nil, err // another key has the same id by chance
	}
	if set.Last == nil {
		set.Last = set.Good // as for most origins, and so kept once
	}
	return &set.DatedSet, data[l.length:], nil
}

// body returns the body with a digest. The caller holds mu.
func (x *Reader) body(digest string) ([]byte, error) {
	b := x.bodies[bodyID(digest)]
	if b.segment == 0 {
		return nil, fs.ErrNotExist
	}
	data, err := x.segment(b.segment).read(b.offset, b.length)
	if err != nil {
		return nil, err
	}
	switch got := snapshot.Digest(string(data)); {
	case got == digest:
		return data, nil
	case bodyID(got) == bodyID(digest): // another body that somebody has made, with the same id
		return nil, fs.ErrNotExist
	}
	return nil, snapshot.ErrChanged
}

// Body returns the file with a SHA-256. The error is fs.ErrNotExist if it is not kept, and snapshot.ErrChanged if it does
// not match its name.
func (x *Reader) Body(digest string) (string, error) {
	if len(digest) != 64 {
		return "", fmt.Errorf("%q is not a SHA-256: %w", digest, fs.ErrNotExist)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	data, err := x.body(digest)
	return string(data), err
}

// Length returns the length of the body with a digest, in bytes; 0 if there is none.
func (x *Reader) Length(digest string) int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return int64(x.bodies[bodyID(digest)].length)
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
	for _, crawlers := range []bool{false, true} {
		file.Crawlers = crawlers
		superseded, err := x.superseded(file)
		if err != nil {
			return nil, err
		}
		all = append(all, superseded...)
		r, _, err := x.load(file.Key())
		if err != nil {
			return nil, err
		}
		scopes := []snapshot.Scope{file}
		if r != nil {
			for slot := range r.Copies {
				scopes = append(scopes, snapshot.Scope{Origin: file.Origin, TDMRep: file.TDMRep, Crawlers: crawlers, Slot: slot})
			}
		}
		for _, scope := range scopes {
			r, _, err := x.load(scope.Key())
			if err != nil {
				return nil, err
			}
			if r != nil {
				for _, a := range r.InForce() {
					all = append(all, a.Within(scope))
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b snapshot.Answer) int { return a.From.Compare(b.From) })
	return all, nil
}

// superseded returns the answers about a file, for one kind of clients, that others have superseded. The caller holds mu.
func (x *Reader) superseded(file snapshot.Scope) (all []snapshot.Answer, err error) {
	for _, s := range x.answers[idOf(file.Key())] {
		l, ok := x.lines[s.key]
		if !ok || s.at <= x.expired() {
			continue
		}
		data, err := x.segment(l.segment).read(l.offset, l.length)
		if err != nil {
			return nil, err
		}
		var a answerLine
		if err := parse(data, l.sum, &a); err != nil {
			return nil, err
		}
		if scope := snapshot.ParseKey(a.Key); scope.Origin == file.Origin {
			all = append(all, a.Answer.Within(scope))
		}
	}
	return all, nil
}

// HostOrigins returns the origins of a host, on all ports, of which there are answers. They are sorted.
func (x *Reader) HostOrigins(host string) ([]string, error) {
	found, wanted, expired := map[string]bool{}, idOf(host), x.expired()
	_, err := x.keys(place{}, func(it *item) bool {
		return it.host == wanted && (it.kind != answer || it.at > expired)
	}, func(key string) bool {
		found[snapshot.ParseKey(key).Origin] = true
		return true
	})
	return slices.Sorted(maps.Keys(found)), err
}

// Origins returns origins, in the order in which they were last saved.
func (x *Reader) Origins(_ context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	var first place
	if from != "" {
		if _, err := fmt.Sscanf(from, "%d-%d", &first.segment, &first.offset); err != nil {
			return nil, "", fmt.Errorf("%q is not a place in the list of origins", from)
		}
	}
	const most = 5000 // are read by one call, in about 10 ms
	read := 0
	end, err := x.keys(first, func(it *item) bool { return it.kind == originSet }, func(key string) bool {
		if origin := snapshot.ParseKey(key).Origin; strings.Contains(origin, contains) {
			origins = append(origins, origin)
		}
		read++
		return read < most && len(origins) < limit
	})
	if end != (place{}) {
		next = fmt.Sprintf("%d-%d", end.segment, end.offset)
	}
	slices.Sort(origins)
	return origins, next, err
}

// keys calls f with the keys of wanted lines, from a place on, until it returns false. End is then the place of the line
// that follows, and else zero.
func (x *Reader) keys(from place, wanted func(*item) bool, f func(key string) bool) (end place, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.segments {
		if s.number < from.segment {
			continue
		}
		var failed error
		err := s.scan(func(it item) bool {
			if s.number == from.segment && it.offset < from.offset || !wanted(&it) || x.lines[it.key].place != it.place {
				return true
			}
			var data []byte
			if data, failed = s.read(it.offset, it.line); failed != nil {
				return false
			}
			var l struct{ Key string }
			if parse(data, it.sum, &l) == nil && !f(l.Key) {
				end = place{s.number, it.offset + 1}
				return false
			}
			return true
		})
		if err = cmp.Or(err, failed); err != nil || end != (place{}) {
			return end, err
		}
	}
	return place{}, nil
}
