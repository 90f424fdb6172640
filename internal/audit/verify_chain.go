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
	known := !v.o.Guessed
	for name := range v.chains {
		h, _ := v.head(name)
		known = known || h.Chain != ""
	}
	if !known {
		v.o.Heads = nil
	}
	if v.runs > maxRuns {
		v.fault("the records are in more than %d pieces: not all of them have been compared", maxRuns)
	}
	foreign := map[string]bool{}
	if v.o.Heads != nil {
		foreign = v.foreignChains()
	}
	names := slices.SortedFunc(maps.Keys(v.chains), func(a, b string) int {
		return cmp.Or(v.chains[a].first.Compare(v.chains[b].first), strings.Compare(a, b))
	})
	for _, name := range names {
		if c := v.chains[name]; len(c.runs) > 0 {
			last := v.join(name, c)
			if v.o.Heads != nil && !foreign[name] {
				v.compareWithHead(name, c, last)
			}
		}
	}
	v.checkKeys()
	v.missingChains()
	if v.leftOut > 0 {
		v.note("records of other gates were left out: %d", v.leftOut)
	}
	for _, file := range v.o.Files {
		if _, ok := v.firstLines[file]; !ok {
			v.note("%s: there is nothing in it", file)
		}
	}
	switch {
	case v.o.Heads == nil && v.o.Guessed:
		v.unchecked(len(v.chains), "whether the first and the last records are all there was not checked: %s has no heads of these chains%s", v.o.Words.Folder, v.o.Words.GiveHeads)
	case v.o.Heads == nil:
		v.fault("%s has no heads of any chain: they have been removed, or it is not that of the gate that wrote this", v.o.Words.Folder)
	}
}

// join checks that the runs of a chain follow each other, and returns the one with the last
// record.
func (v *Verifier) join(name string, c *chainRecords) run {
	slices.SortStableFunc(c.runs, func(a, b run) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	last := run{hash: genesis} // before the first record
	for _, r := range c.runs {
		v.checkBegin(name, r, last)
		if r.numbers[1] > last.numbers[1] {
			last = r
		}
	}
	return last
}

// checkBegin checks the beginning of a run behind the last one of its chain. Records before the
// first run may have been rotated away.
func (v *Verifier) checkBegin(name string, r, last run) {
	number, next := r.numbers[0], last.numbers[1]+1
	newFile, first := r.begins || r.moved, next == 1
	switch {
	case number > next && newFile && first:
		v.Before += number - 1
		where := "at the beginning of"
		if r.moved {
			where = "its first in"
		}
		v.note("chain %s begins with record %d, %s %s: the files before have been rotated away, or were not given", name, number, where, r.file)
	case number > next:
		why := ""
		if newFile {
			why = ": a file was not given, or is gone"
		}
		v.fault("%s: %s missing before this one%s", r.at(), records(next, number-1, name), why)
		return
	case number < next && r.file != last.file:
		v.fault("%s: record %d of chain %s is in %s too", r.at(), number, name, last.file)
		return
	case number == next && r.prev != last.hash:
		v.fault("%s: record %d of chain %s does not follow the one before: one of them has been replaced", r.at(), number, name)
		return
	}
	// The first record of a file must say that it is, or the records of another chain before it may
	// be missing.
	if r.begins || v.firstLines[r.file] != r.lines[0] {
		return
	}
	switch h, ok := v.head(name); {
	case !ok:
		v.note("%s: whether something is missing before this record was not checked: it does not say that a file begins with it, as in what was standard output", r.at())
	case !h.Stream:
		v.fault("%s: the file has not begun with this record: what stood before it is missing", r.at())
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
