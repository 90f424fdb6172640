package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// longAgo is after what time a gate that runs has kept a new head.
const longAgo = time.Minute

// End judges the chains, after all lines.
func (v *Verifier) End() {
	if v.o.Guessed && !v.knowsAny() {
		v.o.Heads = nil
	}
	if v.runs > maxRuns {
		v.fault("the records are in more than %d pieces: not all of them have been compared", maxRuns)
	}
	names := slices.SortedFunc(maps.Keys(v.chains), func(a, b string) int {
		return cmp.Or(v.chains[a].first.Compare(v.chains[b].first), strings.Compare(a, b))
	})
	for _, name := range names {
		if c := v.chains[name]; len(c.runs) > 0 {
			last := v.join(name, c)
			if v.o.Heads != nil {
				v.compareWithHead(name, c, last)
			}
		}
	}
	v.checkKeys()
	v.missingChains()
	v.emptyFiles()
	switch {
	case v.o.Heads == nil && v.o.Guessed:
		v.unchecked(len(v.chains), "whether the first and the last records are all there was not checked: %s has no heads of these chains%s", v.o.Words.Folder, v.o.Words.GiveHeads)
	case v.o.Heads == nil:
		v.fault("%s has no heads of any chain: they have been removed, or it is not that of the gate that wrote this", v.o.Words.Folder)
	}
}

// knowsAny reports whether there is a head of any of the chains.
func (v *Verifier) knowsAny() bool {
	for name := range v.chains {
		_, kept := v.o.Heads[name]
		_, expired := v.o.Expired[name]
		if kept || expired {
			return true
		}
	}
	return false
}

// join checks that the runs of a chain follow each other, and returns the one with the last
// record.
func (v *Verifier) join(name string, c *chainRecords) run {
	slices.SortStableFunc(c.runs, func(a, b run) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	last := c.runs[0]
	v.checkFirst(name, last)
	for _, r := range c.runs[1:] {
		switch next := last.numbers[1] + 1; {
		case r.numbers[0] > next && (r.begins || r.moved):
			v.fault("%s: %s missing before this one: a file was not given, or is gone", r.at(), records(next, r.numbers[0]-1, name))
		case r.numbers[0] > next:
			v.fault("%s: %s missing before this one", r.at(), records(next, r.numbers[0]-1, name))
		case r.numbers[0] < next && r.file != last.file:
			v.fault("%s: record %d of chain %s is in %s too", r.at(), r.numbers[0], name, last.file)
		case r.numbers[0] == next && r.prev != last.hash:
			v.fault("%s: record %d of chain %s does not follow the one at %s: one of them has been replaced", r.at(), next, name, last.end())
		default:
			v.checkFileBegin(name, r)
		}
		if r.numbers[1] > last.numbers[1] {
			last = r
		}
	}
	return last
}

// checkFirst checks the first run of a chain: records before it may have been rotated away.
func (v *Verifier) checkFirst(name string, r run) {
	number := r.numbers[0]
	if r.begins || r.moved {
		v.Before += number - 1
	}
	switch {
	case number == 1 && r.prev != genesis:
		v.fault("%s: record 1 of chain %s says that others come before it", r.at(), name)
	case number > 1 && r.begins:
		v.note("chain %s begins with record %d, at the beginning of %s: the files before have been rotated away, or were not given", name, number, r.file)
	case number > 1 && r.moved:
		v.note("chain %s begins with record %d, its first in %s: the files before have been rotated away, or were not given", name, number, r.file)
		v.checkFileBegin(name, r)
	case number > 1:
		v.fault("%s: %s missing before this one", r.at(), records(1, number-1, name))
	default:
		v.checkFileBegin(name, r)
	}
}

// checkFileBegin checks a run before which nothing of its chain is missing. The first record
// of a file must say that it is, or the records of another chain before it may be missing.
func (v *Verifier) checkFileBegin(name string, r run) {
	if r.begins || v.firstLines[r.file] != r.lines[0] {
		return
	}
	h, ok := v.head(name)
	switch {
	case ok && h.Stream:
	case ok:
		v.fault("%s: the file has not begun with this record: what stood before it is missing", r.at())
	default:
		v.note("%s: whether something is missing before this record was not checked: it does not say that a file begins with it, as in what was standard output", r.at())
	}
}

// compareWithHead compares the end of a chain with its head. Its gate may have written more
// since the heads were read, as far as the later heads permit.
func (v *Verifier) compareWithHead(name string, c *chainRecords, last run) {
	h, ok := v.head(name)
	now, again := v.later[name]
	if !again {
		now = h
	}
	number := last.numbers[1]
	switch {
	case !ok && h.Chain == "":
		v.fault("%s: chain %s is not known to this %s: its records have been added, or were written by a gate with another, or by one that could not write there", last.end(), name, v.o.Words.Folder)
	case !ok && c.newestAfter.After(h.Time.Add(clockSkew)):
		v.fault("%s: chain %s goes on to %s, but its gate did not write to it after %s: records have been added or changed", last.end(), name, c.newestAfter.UTC().Format(time.DateTime), h.Time.UTC().Format(time.DateTime))
	case !ok:
		v.unchecked(1, "whether chain %s is as its gate wrote it was not checked: its head is not kept any more", name)
	case number < h.Number:
		v.fault("%s: %s missing behind this one, its end", last.end(), records(number+1, h.Number, name))
	case number <= now.Number:
	case now.last() == now.Number:
		v.fault("%s: chain %s has ended with record %d: what is behind it has been added", last.end(), name, now.Number)
	case number > now.last() || c.oldestAfter.Before(h.earliest()) || c.newestAfter.After(now.Until):
		v.fault("%s: chain %s had come to record %d when that was kept last, and here goes on to %d: more, or at other times, than its gate writes in a second; records have been added", last.end(), name, now.Number, number)
	case time.Since(now.Until) > longAgo:
		v.note("chain %s had come to record %d when that was kept last, and here goes on to %d: its gate was killed within a second or could not write to %s, or records have been added", name, now.Number, number, v.o.Words.Folder)
	}
}

// checkKeys reports chains that are made with an unknown key, and if keys are given, chains
// without one.
func (v *Verifier) checkKeys() {
	type sum struct{ records, chains int }
	sums := map[string]sum{}
	for _, c := range v.chains {
		s := sums[c.keyID]
		sums[c.keyID] = sum{s.records + c.count, s.chains + 1}
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		s := sums[id]
		if _, known := v.keys[id]; !known {
			v.fault("chains made with key %s, which was not given: %d, of %d records, not checked%s", id, s.chains, s.records, v.o.Words.GiveKey)
		}
		if id == "" && len(v.keys) > 1 && !v.o.Keyless {
			v.fault("chains made without a key: %d, of %d records; %s", s.chains, s.records, v.o.Words.NoKey)
		}
	}
}

// records names records of a chain, with their verb.
func records(from, to int64, chain string) string {
	if from == to {
		return fmt.Sprintf("record %d of chain %s is", from, chain)
	}
	return fmt.Sprintf("records %d to %d of chain %s are", from, to, chain)
}
