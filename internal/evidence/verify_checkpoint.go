package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// checkpoint checks a checkpoint line, and the entries that it covers.
func (v *Verifier) checkpoint(l *Line, at place) {
	name := Origin(l.Checkpoint)
	c, err := v.o.Keys.Open([]byte(l.Checkpoint))
	if _, unverified := errors.AsType[*note.UnverifiedNoteError](err); unverified && !v.o.Keys.names(name) {
		v.withoutKey(l, name, at)
		return
	}
	if err != nil {
		v.fault("%s: the checkpoint of log %q is not signed by its key, or has been changed: %v", at, name, err)
		if l.Edge != nil {
			delete(v.current, l.Gate)
		}
		return
	}
	log := v.log(name)
	v.sign(log, c, l, at)
	p := v.current[l.Gate]
	if l.Edge != nil {
		p = v.begin(log, p, c, l, at)
	} else if p != nil && p.log != log {
		v.fault("%s: a checkpoint of log %s among the records of log %s", at, name, p.log.name)
		return
	}
	if p == nil {
		v.fault("%s: a checkpoint of log %s, and no line with an edge stands before it in this file: the beginning of the file is missing", at, name)
		return
	}
	if l.Resumed > 0 {
		v.resumed(p, at)
	}
	v.cover(p, c, l.Time, at)
	p.ended = l.End || p.ended && l.Edge == nil // only a start of the gate goes on behind the end
	p.line = at.line
}

// withoutKey reports a log that can't be verified.
func (v *Verifier) withoutKey(l *Line, name string, at place) {
	if l.Edge == nil {
		return
	}
	v.current[l.Gate] = nil
	if !v.unknown[l.Gate] {
		v.unknown[l.Gate] = true
		v.fault("%s: log %q: no key for it is given, so nothing of it is verified; name its key with --key", at, name)
	}
}

// sign compares a checkpoint with those of the same log, and notes how far it has been signed.
func (v *Verifier) sign(log *logLines, c torchwood.Checkpoint, l *Line, at place) {
	if s, ok := log.roots[c.N]; !ok && len(log.roots) < maxRoots {
		log.roots[c.N] = signed{c.Hash, at, l.Checkpoint}
	} else if ok && s.root != c.Hash {
		v.fault("%s: log %s has two checkpoints of %d records with different roots, so its operator has signed two histories. The other is %s:\n%s\n%s", at, log.name, c.N, s.at, l.Checkpoint, s.note)
	}
	if c.N >= log.newest {
		log.newest, log.signed = c.N, l.Time
	}
}

// begin begins a piece with a line that has an edge, or goes on with the one before, and returns it. After a fault
// it returns nil.
func (v *Verifier) begin(log *logLines, before *piece, c torchwood.Checkpoint, l *Line, at place) *piece {
	delete(v.current, l.Gate)
	t := &Tree{Size: c.N, Hashes: l.Edge}
	if !t.valid() || t.Root() != c.Hash {
		v.fault("%s: the edge does not fit the checkpoint of %d records of log %s: it has been changed", at, c.N, log.name)
		return nil
	}
	if before != nil && before.log == log && before.broken == "" && before.next == c.N {
		v.current[l.Gate] = before // the gate has started again
		return before
	}
	if before != nil && before.log == log && before.next > c.N && before.covered == c.N && before.fits == c.Hash {
		v.cutTail(before, c.N, at)
	}
	p := &piece{log: log, at: at, line: at.line, start: c.N, root: c.Hash, resumed: l.Resumed > 0, tree: t, next: c.N, covered: c.N, fits: c.Hash, signed: l.Time}
	p.want()
	log.pieces = append(log.pieces, p)
	v.current[l.Gate] = p
	return p
}

// cutTail leaves out the entries of a piece that no checkpoint covers, and behind which the log goes on with a lower
// index: those of a gate that was killed while it wrote to a stream.
func (v *Verifier) cutTail(p *piece, to int64, at place) {
	why := fmt.Sprintf("the log goes on with record %d at %s", to, at)
	v.uncovered(p, why)
	p.next, p.tail, p.broken = to, interval{}, why
	maps.DeleteFunc(p.known, func(size int64, _ tlog.Hash) bool { return size > to })
}

// resumed judges the entries behind the last checkpoint of a piece, which a start of the gate after a kill has covered.
func (v *Verifier) resumed(p *piece, at place) {
	if p.covered < p.next && !p.tail.within(maxResumed, p.signed) {
		v.fault("%s: a start after a kill has covered %s of log %s, and their times, %s to %s, do not fit the checkpoint before, of %s: records have been added", at, p.behind(), p.log.name, utc(p.tail.oldest), utc(p.tail.newest), utc(p.signed))
	}
}

// cover compares the tree of a piece with a checkpoint.
func (v *Verifier) cover(p *piece, c torchwood.Checkpoint, signed time.Time, at place) {
	switch {
	case c.N > p.next:
		p.broken = v.fault("%s: %s missing before this checkpoint of log %s", at, entries(p.next, c.N-1), p.log.name)
		p.next = c.N
	case c.N < p.next:
		return // sign compares it
	case p.broken == "" && p.tree.Root() != c.Hash:
		p.broken = v.fault("%s: the checkpoint of %d records of log %s does not fit %s: a record has been changed, added or replaced", at, c.N, p.log.name, p.behind())
	}
	if p.covered < c.N {
		p.groups = append(p.groups, group{c.N, c.Hash, p.tail.oldest})
	}
	p.covered, p.fits, p.signed, p.tail = c.N, c.Hash, signed, interval{}
}

// rootAt returns the root of the tree with a size at which the piece begins or has a checkpoint. ok is false at others.
func (p *piece) rootAt(size int64) (root tlog.Hash, ok bool) {
	if size == p.start {
		return p.root, true
	}
	i, ok := slices.BinarySearchFunc(p.groups, size, func(g group, size int64) int { return cmp.Compare(g.size, size) })
	if !ok {
		return root, false
	}
	return p.groups[i].root, true
}

// behind names the entries behind the last checkpoint.
func (p *piece) behind() string {
	return fmt.Sprintf("records %d to %d (up to %s:%d)", p.covered, p.next-1, p.at.file, p.line)
}
