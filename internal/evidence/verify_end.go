package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// maxTail is the time after the last checkpoint in which the entries behind it were written.
	maxTail = 5 * time.Second
)

// End judges the logs, after all lines.
func (v *Verifier) End() {
	for _, name := range slices.Sorted(maps.Keys(v.logs)) {
		l := v.logs[name]
		if len(l.pieces) == 0 {
			continue
		}
		v.join(l)
		v.Logs = append(v.Logs, l.report())
	}
	for _, k := range v.o.Known {
		v.compare(k)
	}
	if v.old > 0 {
		v.note("%s: records in the form of versions before the transparency log: %d. They can't be verified; the version that wrote them can", v.oldAt, v.old)
	}
	if len(v.logs) == 0 && v.Faulty == 0 && v.old == 0 {
		v.note("there is no record in what was given")
	}
	if rest := v.Faulty - len(v.Faults); rest > 0 {
		v.Faults = append(v.Faults, fmt.Sprintf("%d faults more", rest))
	}
}

// join checks that the pieces of a log follow each other.
func (v *Verifier) join(l *logLines) {
	slices.SortStableFunc(l.pieces, func(a, b *piece) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.covered, b.covered), cmp.Compare(a.next, b.next))
	})
	first := l.pieces[0]
	if first.start > 0 {
		v.note("log %s begins with record %d, in %s: the files before have been rotated away, or were not given", l.name, first.start, first.at.file)
	}
	last := first
	for _, p := range l.pieces[1:] {
		switch {
		case p.start > last.next:
			v.fault("%s: %s missing from log %s before this line: a file was not given, or is gone", p.at, entries(last.next, p.start-1), l.name)
		case p.start == last.next && last.broken == "" && last.tree.Root() != p.root:
			v.fault("%s: the checkpoint of %d records of log %s does not fit %s: a record has been changed, added or replaced", p.at, p.start, l.name, last.behind())
		case p.start == last.next:
			if p.resumed {
				v.resumed(last, p.at)
			}
			if last.covered < p.start {
				last.groups = append(last.groups, group{p.start, p.root, last.tail.oldest})
			}
			last.covered, last.fits, last.signed, last.tail = p.start, p.root, p.signed, interval{}
		case p.start == last.covered && p.root == last.fits && p.next > p.start:
			v.cutTail(last, p.start, p.at)
		case p.next > p.start:
			v.fault("%s: record %d of log %s is in %s too", p.at, p.start, l.name, last.at.file)
		default: // it has no record, but may be what a kept checkpoint is compared with
			if root, ok := last.rootAt(p.start); !ok || root != p.root {
				v.fault("%s: the checkpoint of %d records of log %s does not fit those in %s", p.at, p.start, l.name, last.at.file)
			}
		}
		if p.next >= last.next {
			last = p
		}
	}
	if last.covered < last.next {
		v.uncovered(last, "its gate runs, or was killed and has not been started again")
	}
}

// uncovered reports the entries of a piece that no checkpoint covers.
func (v *Verifier) uncovered(p *piece, why string) {
	if !p.tail.within(maxTail, p.signed) {
		v.fault("%s:%d: no checkpoint covers %s of log %s, and their times, %s to %s, are not within %v of the last one, of %s: records have been added, or checkpoints removed",
			p.at.file, p.line, p.behind(), p.log.name, utc(p.tail.oldest), utc(p.tail.newest), maxTail, utc(p.signed))
		return
	}
	v.note("%s:%d: no checkpoint covers %s of log %s: %s", p.at.file, p.line, p.behind(), p.log.name, why)
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// compare compares a log with a checkpoint that someone has kept.
func (v *Verifier) compare(k Known) {
	c, err := v.o.Keys.Open([]byte(k.Note))
	if err != nil {
		v.fault("%s: the checkpoint of log %q can't be used: %v", k.Where, Origin(k.Note), err)
		return
	}
	l := v.logs[c.Origin]
	if len(l.pieces) == 0 {
		v.absent(k, c.Origin, c.N)
		return
	}
	first, end, read, fits := l.pieces[0].start, int64(0), false, true
	for _, p := range l.pieces {
		end = max(end, p.next)
		if root, ok := p.known[c.N]; ok {
			read, fits = true, fits && root == c.Hash
		}
	}
	switch {
	case c.N > end:
		v.fault("log %s ends with record %d, and %s has a checkpoint of %d records: records were removed from its end, or a file was not given", l.name, end-1, k.Where, c.N)
	case c.N < first:
		v.note("log %s begins with record %d: it can't be compared with the checkpoint of %d records in %s", l.name, first, c.N, k.Where)
	case !read:
		v.note("log %s can't be compared with the checkpoint of %d records in %s, since records before it are missing or changed", l.name, c.N, k.Where)
	case !fits:
		v.fault("log %s does not fit the checkpoint of %d records in %s, which is signed by its key: its operator has signed two histories", l.name, c.N, k.Where)
	}
}

// absent reports a log of which there is no entry.
func (v *Verifier) absent(k Known, name string, size int64) {
	if size == 0 {
		return
	}
	if k.Ended {
		var written interval
		for _, l := range v.logs {
			for _, p := range l.pieces {
				for _, g := range p.groups {
					written.add(g.oldest)
				}
			}
		}
		if k.Time.Before(written.oldest) {
			v.note("log %s, of %d records until %s, was rotated away, or was not given", name, size, utc(k.Time))
			return
		}
	}
	v.fault("log %s: %s has a checkpoint of %d records, and none of them is in what was given: they were removed, or a file was not given", name, k.Where, size)
}

// last returns the last piece that was read, nil if there is none.
func (l *logLines) last() *piece {
	if len(l.pieces) == 0 {
		return nil
	}
	return l.pieces[len(l.pieces)-1]
}

func (l *logLines) report() Report {
	r := Report{Name: l.name, Key: l.key, First: l.pieces[0].start, Last: l.pieces[0].start - 1, Size: l.newest, Signed: l.signed}
	for _, p := range l.pieces {
		r.Entries += p.next - p.start
		r.Last = max(r.Last, p.next-1)
	}
	return r
}

// String describes the log in one line.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "log %s: %d records", r.Name, r.Entries)
	if r.Last >= r.First {
		fmt.Fprintf(&b, ", %d to %d", r.First, r.Last)
	}
	fmt.Fprintf(&b, "; key %s", r.Key)
	if !r.Signed.IsZero() {
		fmt.Fprintf(&b, "; last checkpoint of %s covers %d", utc(r.Signed), r.Size)
	}
	return b.String()
}
