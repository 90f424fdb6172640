package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// maxRuns bounds the pieces that chains may be found in, and so the memory.
	maxRuns = 200_000
	// longAgo is when a gate that runs has kept how far it has come.
	longAgo = time.Minute
	// maxSaid bounds what is said of them.
	maxSaid = 1000
)

// A Verifier checks that records are those that gates have written: all of them,
// in their order, unchanged. Files may come in any order.
type Verifier struct {
	Records int
	Lost    int      // that could not be written at the time, as the records say
	Before  int64    // that were written before what is here, as Notes say, and need not be there any more
	Said    []string // what is wrong, the first of it
	Wrong   int      // how much
	Notes   []string // what could not be checked, or deserves a look
	// Unchecked is how many chains could not be compared with their heads.
	Unchecked int

	// Guess says that the heads may be those of other gates.
	Guess bool
	// Strict makes a chain that could not be compared with its head a fault.
	Strict bool
	// Expired has the heads that have been removed, see [Expired].
	Expired map[string]Head
	// Keyless says that chains without a key are no fault where a key is given.
	Keyless bool

	hashes digesters

	heads      map[string]Head // before the lines were read; nil: not at hand
	later      map[string]Head // after that
	given      []string        // files
	firstLines map[string]int  // of each of them that has one
	chains     map[string]*track
	runs       int
}

// A track is what has been seen of a chain.
type track struct {
	key    string // ID of the key that it is made with
	count  int    // of its records
	runs   []run
	first  time.Time    // when the oldest record was written
	behind [2]time.Time // when the oldest and the newest behind the head were
}

// A run is records of one file that follow each other.
type run struct {
	file       string
	lines      [2]int   // first and last
	numbers    [2]int64 // first and last
	prev, hash string   // before the first, and of the last
	place      string   // of the first, as in its line
}

// NewVerifier returns one for the lines of these files, that knows how far chains have
// come, nil if that is not known, and the keys that they are made with.
func NewVerifier(heads map[string]Head, files []string, keys ...Key) *Verifier {
	return &Verifier{heads: heads, given: files, hashes: newDigesters(keys...), firstLines: map[string]int{}, chains: map[string]*track{}}
}

func (v *Verifier) wrong(format string, args ...any) {
	if v.Wrong++; len(v.Said) < maxSaid {
		v.Said = append(v.Said, fmt.Sprintf(format, args...))
	}
}

func (v *Verifier) note(format string, args ...any) {
	if len(v.Notes) < maxSaid {
		v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
	}
}

// unproven notes that a chain could not be compared with its head.
func (v *Verifier) unproven(format string, args ...any) {
	if v.Strict {
		v.wrong(format, args...)
		return
	}
	v.note(format, args...)
}

// Line takes the next line.
func (v *Verifier) Line(l *Line) {
	if _, ok := v.firstLines[l.File]; !ok {
		v.firstLines[l.File] = l.Number
	}
	r := l.Record
	switch {
	case r == nil && l.Open && isTorn(l.Text):
		v.note("%s: half a record: it is being written, or a sudden end has cut it off", l.At())
		return
	case r == nil:
		v.wrong("%s: no record (%v): it has been added or changed", l.At(), l.Err)
		return
	case r.Chain == "" || r.Number < 1:
		v.wrong("%s: a record without its place in a chain: it has been added or changed", l.At())
		return
	}
	v.Records++
	v.Lost += r.Lost
	if intact, known := v.hashes.intact(l.Text, r.Key); known && !intact {
		v.wrong("%s: record %d of chain %s has been changed", l.At(), r.Number, r.Chain)
	}
	h, ok := v.head(r.Chain)
	if ok && h.Number == r.Number && h.Hash != r.Hash {
		v.wrong("%s: record %d of chain %s is another than the one that was written", l.At(), r.Number, r.Chain)
	}
	t := v.chains[r.Chain]
	if t == nil {
		t = &track{first: r.written(), key: r.Key}
		v.chains[r.Chain] = t
	}
	if t.count++; r.Key != t.key {
		v.wrong("%s: record %d of chain %s is not made with the key of others in it", l.At(), r.Number, r.Chain)
	}
	at := r.written()
	if at.Before(t.first) {
		t.first = at
	}
	if r.Number > h.Number {
		t.addBehind(at)
	}
	v.follow(t, l, r)
}

func (t *track) addBehind(at time.Time) {
	if t.behind[0].IsZero() || at.Before(t.behind[0]) {
		t.behind[0] = at
	}
	if at.After(t.behind[1]) {
		t.behind[1] = at
	}
}

// follow makes a record part of the run before it, or begins another.
func (v *Verifier) follow(t *track, l *Line, r *Record) {
	if n := len(t.runs); n > 0 && t.runs[n-1].file == l.File {
		last := &t.runs[n-1]
		if r.Number == last.numbers[1]+1 && r.Prev == last.hash {
			last.lines[1], last.numbers[1], last.hash = l.Number, r.Number, r.Hash
			return
		}
		if r.Number <= last.numbers[1] {
			v.wrong("%s: record %d of chain %s stands behind record %d: it is there twice, or not in its place", l.At(), r.Number, r.Chain, last.numbers[1])
		}
	}
	if v.runs++; v.runs > maxRuns {
		return // End says so
	}
	place := ""
	switch {
	case r.Begins:
		place = begins
	case r.Moved:
		place = moved
	}
	t.runs = append(t.runs, run{
		file: l.File, lines: [2]int{l.Number, l.Number}, numbers: [2]int64{r.Number, r.Number}, prev: r.Prev, hash: r.Hash, place: place,
	})
}

// End judges the chains as wholes.
func (v *Verifier) End() {
	if v.Guess && !v.knowsAny() {
		v.heads = nil
	}
	if v.runs > maxRuns {
		v.wrong("the records are in more than %d pieces: not all of them have been compared", maxRuns)
	}
	names := slices.SortedFunc(maps.Keys(v.chains), func(a, b string) int {
		return cmp.Or(v.chains[a].first.Compare(v.chains[b].first), strings.Compare(a, b))
	})
	for _, name := range names {
		if t := v.chains[name]; len(t.runs) > 0 {
			v.end(name, t, v.join(name, t))
		}
	}
	v.keys()
	v.unseen()
	v.empty()
	switch {
	case v.heads == nil && v.Guess:
		v.Unchecked = len(v.chains)
		v.unproven("whether the first and the last records are all there was not checked: data_dir has no heads of these chains; give -c with the gate's configuration")
	case v.heads == nil:
		v.wrong("data_dir has no heads of any chain: they have been removed, or it is not that of the gate that wrote this")
	}
}

// keys reports the chains whose key was not given, and where keys were given, those that
// are made without one.
func (v *Verifier) keys() {
	type sum struct{ records, chains int }
	sums := map[string]sum{}
	for _, t := range v.chains {
		s := sums[t.key]
		sums[t.key] = sum{s.records + t.count, s.chains + 1}
	}
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		s := sums[key]
		if _, known := v.hashes[key]; !known {
			v.wrong("chains made with key %s, which was not given: %d, of %d records, not checked; give it with --key-file, or -c with the gate's configuration", key, s.chains, s.records)
		}
		if key == "" && len(v.hashes) > 1 && !v.Keyless {
			v.wrong("chains made without a key: %d, of %d records; they are from before log.audit_key_file was set, which --keyless accepts, or have been added", s.chains, s.records)
		}
	}
}

// head returns the last head of a chain, also if it has been removed. It is not ok if none
// is known.
func (v *Verifier) head(chain string) (h Head, ok bool) {
	if h, ok = v.heads[chain]; ok {
		return h, true
	}
	h = v.Expired[chain]
	return h, h.Hash != ""
}

// knowsAny reports whether data_dir knows any of the chains.
func (v *Verifier) knowsAny() bool {
	for name := range v.chains {
		_, kept := v.heads[name]
		_, expired := v.Expired[name]
		if kept || expired {
			return true
		}
	}
	return false
}

// join puts the runs of a chain one after the other, and returns the last number.
func (v *Verifier) join(name string, t *track) run {
	slices.SortStableFunc(t.runs, func(a, b run) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	first := t.runs[0]
	at := func(r run) string { return fmt.Sprintf("%s:%d", r.file, r.lines[0]) }
	if first.place != "" {
		v.Before += first.numbers[0] - 1
	}
	switch number := first.numbers[0]; {
	case number == 1 && first.prev != genesis:
		v.wrong("%s: record 1 of chain %s says that others come before it", at(first), name)
	case number > 1 && first.place == begins:
		v.note("chain %s begins with record %d, at the beginning of %s: the files before have been rotated away, or were not given", name, number, first.file)
	case number > 1 && first.place == moved:
		v.note("chain %s begins with record %d, its first in %s: the files before have been rotated away, or were not given", name, number, first.file)
		v.beginning(name, first)
	case number > 1:
		v.wrong("%s: %s missing before this one", at(first), span(1, number-1, name))
	default:
		v.beginning(name, first)
	}
	last := first
	for _, r := range t.runs[1:] {
		switch next := last.numbers[1] + 1; {
		case r.numbers[0] > next && r.place != "":
			v.wrong("%s: %s missing before this one: a file was not given, or is gone", at(r), span(next, r.numbers[0]-1, name))
		case r.numbers[0] > next:
			v.wrong("%s: %s missing before this one", at(r), span(next, r.numbers[0]-1, name))
		case r.numbers[0] < next && r.file != last.file:
			v.wrong("%s: record %d of chain %s is in %s too", at(r), r.numbers[0], name, last.file)
		case r.numbers[0] == next && r.prev != last.hash:
			v.wrong("%s: record %d of chain %s does not follow the one at %s:%d: one of them has been replaced", at(r), next, name, last.file, last.lines[1])
		default:
			v.beginning(name, r)
		}
		if r.numbers[1] > last.numbers[1] {
			last = r
		}
	}
	return last
}

// end compares the end of a chain with its head. Its gate may have written more since the
// heads were read: how far it may go the later ones say.
func (v *Verifier) end(name string, t *track, last run) {
	if v.heads == nil {
		return
	}
	h, ok := v.head(name)
	now, again := v.later[name]
	if !again {
		now = h
	}
	number := last.numbers[1]
	switch {
	case !ok && h.Chain == "":
		v.wrong("%s:%d: chain %s is not known to this data_dir: its records have been added, or were written by a gate with another, or by one that could not write there", last.file, last.lines[1], name)
	case !ok && t.behind[1].After(h.Time.Add(earlier)):
		v.wrong("%s:%d: chain %s goes on to %s, but its gate did not write to it after %s: records have been added or changed", last.file, last.lines[1], name, t.behind[1].UTC().Format(time.DateTime), h.Time.UTC().Format(time.DateTime))
	case !ok:
		v.Unchecked++
		v.unproven("whether chain %s is as its gate wrote it was not checked: its head is not kept any more", name)
	case number < h.Number:
		v.wrong("%s:%d: %s missing behind this one, its end", last.file, last.lines[1], span(number+1, h.Number, name))
	case number <= now.Number:
	case now.last() == now.Number:
		v.wrong("%s:%d: chain %s has ended with record %d: what is behind it has been added", last.file, last.lines[1], name, now.Number)
	case number > now.last() || t.behind[0].Before(h.earliest()) || t.behind[1].After(now.latest(t.behind[0])):
		v.wrong("%s:%d: chain %s had come to record %d when that was kept last, and here goes on to %d: more, or at other times, than its gate writes in a second; records have been added", last.file, last.lines[1], name, now.Number, number)
	case time.Since(now.Until) > longAgo:
		v.note("chain %s had come to record %d when that was kept last, and here goes on to %d: its gate was killed within a second or could not write to data_dir, or records have been added", name, now.Number, number)
	}
}

// span names records that are missing.
func span(from, to int64, chain string) string {
	if from == to {
		return fmt.Sprintf("record %d of chain %s is", from, chain)
	}
	return fmt.Sprintf("records %d to %d of chain %s are", from, to, chain)
}

// Chains returns how many there are.
func (v *Verifier) Chains() int { return len(v.chains) }
