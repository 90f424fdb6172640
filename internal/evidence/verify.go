package evidence

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	maxFaults = 100 // bounds Faults
	// maxResumed is how much younger than the last checkpoint the records of a kill can be.
	maxResumed = 2 * time.Second
	// maxTail is the same for records that no checkpoint covers yet. They can also be that much older: while a
	// checkpoint is made, on a slow disk, records wait.
	maxTail = 5 * time.Second
)

// MaxLine bounds a line of a log, in bytes. It is several times as long as the longest entry.
const MaxLine = 1 << 20

// A Text is a line of a file.
type Text struct {
	Number int
	Text   []byte // without its end
	Open   bool   // the file ends in the line, without an end of line
}

// A Place reads from an entry its index, and about when it was written. It reports false if the text is none.
type Place func(text []byte) (index int64, written time.Time, ok bool)

// VerifyOptions say what lines are checked against.
type VerifyOptions struct {
	Key   *Key  // of the log
	Place Place // reads the entries
	// From, unless it is nil, is a verified state: the entries before its checkpoint are not checked.
	From *State
	// Known, unless it is nil, is a checkpoint that the key has signed: the log must agree with it. Own says that
	// it is the last one in data_dir, which may be of another log.
	Known     *torchwood.Checkpoint
	KnownFile string
	Own       bool
}

// A Verifier checks that the entries of one log are complete, in their order and unchanged. Line takes all lines, the
// files in the order of their records; then End completes the result.
type Verifier struct {
	Name    string    // of the log
	First   int64     // index of the first entry that was checked: that of From, else 0, unless the ones before it are missing
	Covered int64     // size of the tree that the last checkpoint is for
	Signed  time.Time // its time
	Faults  []string
	Faulty  int      // number of faults
	Notes   []string // what could not be checked, or deserves a look

	o         VerifyOptions
	at        place
	begun     bool
	tree      Tree
	broken    bool      // the tree is not known any more
	root      tlog.Hash // of the last checkpoint
	ended     bool
	late      time.Duration // how much younger the entries behind it are, at most; one that is too old counts as late
	last      place         // of the last entry
	knownRoot *tlog.Hash    // of the tree with the size of the known checkpoint
}

// A place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// NewVerifier returns a verifier that has no lines yet.
func NewVerifier(o VerifyOptions) *Verifier {
	v := &Verifier{o: o}
	if s := o.From; s != nil {
		v.Name, v.First, v.tree = s.checkpoint.Origin, s.Tree.Size, *s.Tree
		v.Covered, v.root, v.Signed, v.ended = s.Tree.Size, s.checkpoint.Hash, s.Time, s.End
	}
	v.want()
	return v
}

func (v *Verifier) fault(format string, args ...any) {
	if v.Faulty++; len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
	}
}

func (v *Verifier) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// want notes the root of the tree, if the known checkpoint is for it.
func (v *Verifier) want() {
	if v.o.Known != nil && v.tree.Size == v.o.Known.N && !v.broken {
		v.knownRoot = new(v.tree.Root())
	}
}

// Line checks a line of a file.
func (v *Verifier) Line(file string, line Text) {
	v.at = place{file, line.Number}
	if l, ok := ParseLine(line.Text); ok {
		v.checkpoint(l)
		return
	}
	index, written, ok := v.o.Place(line.Text)
	switch {
	case len(bytes.TrimSpace(line.Text)) == 0: // a probe of the file
	case ok:
		v.entry(index, written, line.Text)
	case line.Open && bytes.HasPrefix(line.Text, []byte("{")):
		v.note("%s: half a line: it is being written, or a sudden end has cut it off", v.at)
	default:
		v.fault("%s: no record: the line has been added or changed", v.at)
	}
}

// goTo goes on with the entry with an index, and reports those that are missing before it.
func (v *Verifier) goTo(index int64) {
	if !v.begun && v.o.From == nil {
		v.First = index
	} else if v.tree.Size < index {
		v.fault("%s: records %d to %d are missing before this line of log %s", v.at, v.tree.Size, index-1, v.Name)
	}
	v.begun = true
	if v.tree.Size < index {
		v.tree, v.broken = Tree{Size: index}, true
	}
}

func (v *Verifier) entry(index int64, written time.Time, text []byte) {
	if index < v.First {
		return // From is behind it
	}
	v.goTo(index)
	if index < v.tree.Size {
		v.broken = true
		v.fault("%s: record %d of log %s, where record %d is expected: it is there twice, has been added, or is not in its place", v.at, index, v.Name, v.tree.Size)
		return
	}
	if v.ended {
		v.fault("%s: record %d of log %s: the log has ended before it: the record has been added", v.at, index, v.Name)
	}
	if v.broken {
		v.tree.Size++
	} else {
		v.tree.Append(tlog.RecordHash(text))
	}
	if d := written.Sub(v.Signed); d >= -maxTail {
		v.late = max(v.late, d)
	} else {
		v.late = math.MaxInt64
	}
	v.last = v.at
	v.want()
}

func (v *Verifier) checkpoint(l *Line) {
	c, err := v.o.Key.Open(l.Checkpoint)
	switch {
	case err != nil:
		log, _ := l.Stated()
		v.fault("%s: the checkpoint of log %q is not signed by the key, or has been changed: %v", v.at, log, err)
		return
	case v.Name != "" && v.Name != c.Origin:
		v.fault("%s: a checkpoint of log %s among the lines of log %s: verify each log by itself", v.at, c.Origin, v.Name)
		return
	case c.N < v.First:
		return // From is behind it
	}
	v.Name = c.Origin
	v.goTo(c.N)
	switch {
	case c.N == v.Covered && !v.Signed.IsZero() && c.Hash != v.root:
		v.fault("%s: log %s has two checkpoints of %d records with different roots, so its operator has signed two histories", v.at, v.Name, c.N)
	case c.N < v.tree.Size:
		v.fault("%s: the checkpoint of %d records of log %s stands behind record %d: it is not in its place", v.at, c.N, v.Name, v.tree.Size-1)
		return
	case !v.broken && v.tree.Root() != c.Hash:
		v.broken = true
		v.fault("%s: the checkpoint of %d records of log %s does not fit %s: a record has been changed, added or replaced", v.at, c.N, v.Name, v.behind())
	case l.Resumed > 0 && v.late > maxResumed:
		v.fault("%s: a start after a kill has covered %s of log %s, and their times do not fit the checkpoint before, of %s: records have been added", v.at, v.behind(), v.Name, utc(v.Signed))
	}
	v.Covered, v.root, v.Signed, v.ended, v.late = c.N, c.Hash, l.Time, l.End, 0
}

// behind names the entries behind the last checkpoint.
func (v *Verifier) behind() string {
	return fmt.Sprintf("records %d to %d (up to %s)", v.Covered, v.tree.Size-1, v.last)
}

// End judges the log, after all lines.
func (v *Verifier) End() {
	switch {
	case v.Covered == v.tree.Size:
	case v.late <= maxTail:
		v.note("%s: no checkpoint covers %s of log %s: its gate runs, or was killed and has not been started again", v.last, v.behind(), v.Name)
	default:
		v.fault("%s: no checkpoint covers %s of log %s, and their times are not within %v of the last one, of %s: records have been added, or checkpoints removed",
			v.last, v.behind(), v.Name, maxTail, utc(v.Signed))
	}
	if v.o.Known != nil {
		v.compare()
	}
}

// compare compares the log with the known checkpoint.
func (v *Verifier) compare() {
	c, file := v.o.Known, v.o.KnownFile
	switch {
	case c.Origin != v.Name && v.Name != "" && v.o.Own:
	case c.Origin != v.Name && v.Name != "":
		v.fault("%s has a checkpoint of log %s, and these lines are of log %s", file, c.Origin, v.Name)
	case c.N > v.tree.Size:
		v.fault("log %s ends with record %d, and %s has a checkpoint of %d records: records were removed from its end, or a file was not given", c.Origin, v.tree.Size-1, file, c.N)
	case v.knownRoot == nil:
		v.note("log %s can't be compared with the checkpoint of %d records in %s, since records before it are missing or changed", c.Origin, c.N, file)
	case *v.knownRoot != c.Hash:
		v.fault("log %s does not fit the checkpoint of %d records in %s, which is signed by its key: its operator has signed two histories", c.Origin, c.N, file)
	}
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Size returns the number of entries, those before First included.
func (v *Verifier) Size() int64 { return v.tree.Size }
