package evidence

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// maxTexts bounds Faults and Notes each.
const maxTexts = 1000

// VerifyOptions say what lines are checked against.
type VerifyOptions struct {
	Keys *Keys // of the logs
	// Known are checkpoints that someone has kept: the logs must agree with them.
	Known []Known
	// Gate, if it is not empty, leaves out the lines of other gates.
	Gate string
	// Strict makes notes faults.
	Strict bool
	// Leaf, if it is set, is called for each entry of a log, in the order of the lines. Written is about when it was written.
	Leaf func(log string, index int64, hash tlog.Hash, written time.Time)
}

// A Known checkpoint is a signed note, and where it has been kept.
type Known struct {
	Note, Where string
	// Ended says that the log may have been rotated away, at any time since.
	Ended bool
	Time  time.Time // of an ended log: when it was signed
}

// A Verifier checks that the entries of logs are complete, in their order and unchanged. Line takes all lines, the
// files in any order; then End completes the result.
type Verifier struct {
	Entries int
	Lost    int64    // entries that could not be written at the time, as other entries say
	Faults  []string // the first of each kind, and then others
	Faulty  int      // number of faults
	Notes   []string // what could not be checked, or deserves a look
	Logs    []Report // after End, by name

	o       VerifyOptions
	logs    map[string]*logLines
	unknown map[string]bool   // by gate: it has a log without a key
	current map[string]*piece // by gate, in the file that is read
	file    string
	kinds   map[string]bool // of faults, by their formats
	old     int             // entries in the form of earlier versions
	oldAt   place
}

// A Report is what was found of one log.
type Report struct {
	Name    string    `json:"log"`
	Key     string    `json:"key"`
	Entries int64     `json:"records"`
	First   int64     `json:"first"` // index
	Last    int64     `json:"last"`  // index; less than First: there is no entry
	Size    int64     `json:"size"`  // entries that the newest checkpoint covers
	Signed  time.Time `json:"signed,omitzero"`
}

// logLines is what was read of a log.
type logLines struct {
	name   string
	key    string
	pieces []*piece
	roots  map[int64]signed // the checkpoints, by size
	wanted map[int64]bool   // sizes of known checkpoints
	newest int64            // size of the newest checkpoint
	signed time.Time        // its time
}

// signed is a checkpoint in a log.
type signed struct {
	root tlog.Hash
	at   place
	note string
}

// maxRoots bounds the checkpoints of a log that are kept to compare others with them.
const maxRoots = 1_000_000

// A piece is lines of one log in one file, from a line with an edge on.
type piece struct {
	log     *logLines
	at      place // the first line
	line    int   // the last line
	start   int64
	root    tlog.Hash // at the start
	resumed bool      // the first line says so
	tree    *Tree
	next    int64  // index of the next entry
	broken  string // why the tree is not known any more; empty: it is
	ended   bool
	covered int64     // by the last checkpoint
	fits    tlog.Hash // its root
	signed  time.Time // its time
	tail    interval  // times of the entries behind it
	groups  []group
	known   map[int64]tlog.Hash // roots of the trees with the wanted sizes
	last    time.Time
}

// A group is the entries between two checkpoints.
type group struct {
	size   int64     // the second of them
	root   tlog.Hash // its root
	oldest time.Time
}

// An interval is the times of some entries, as they were written.
type interval struct{ oldest, newest time.Time }

func (i *interval) add(t time.Time) {
	if i.oldest.IsZero() || t.Before(i.oldest) {
		i.oldest = t
	}
	if t.After(i.newest) {
		i.newest = t
	}
}

// within reports whether the entries may be those behind a checkpoint, and were written at most d after it.
func (i *interval) within(d time.Duration, of time.Time) bool {
	return i.oldest.Sub(of) >= -maxWaited && i.newest.Sub(of) <= d
}

// NewVerifier returns a verifier that has no lines yet.
func NewVerifier(o VerifyOptions) *Verifier {
	v := &Verifier{o: o, logs: map[string]*logLines{}, unknown: map[string]bool{}, current: map[string]*piece{}, kinds: map[string]bool{}}
	for _, k := range o.Known {
		if c, err := o.Keys.Open([]byte(k.Note)); err == nil {
			v.log(c.Origin).wanted[c.N] = true
		}
	}
	return v
}

func (v *Verifier) log(name string) *logLines {
	l := v.logs[name]
	if l == nil {
		l = &logLines{name: name, roots: map[int64]signed{}, wanted: map[int64]bool{}}
		l.key, _ = v.o.Keys.Log(name)
		v.logs[name] = l
	}
	return l
}

// fault notes a fault, and returns its text. The first of each kind is in the report, however many there are.
func (v *Verifier) fault(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if v.Faulty++; len(v.Faults) < maxTexts || !v.kinds[format] {
		v.Faults = append(v.Faults, text)
	}
	v.kinds[format] = true
	return text
}

// note notes what could not be checked, or deserves a look.
func (v *Verifier) note(format string, args ...any) {
	switch {
	case v.o.Strict:
		v.fault(format, args...)
	case len(v.Notes) < maxTexts:
		v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
	}
}

// A place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// Line takes the next line of a file.
func (v *Verifier) Line(file string, line Text) {
	if file != v.file {
		v.file = file
		clear(v.current)
	}
	at, text := place{file, line.Number}, line.Text
	if l, ok := parseLine(text); ok {
		if v.o.Gate == "" || v.o.Gate == l.Gate {
			v.checkpoint(l, at)
		}
		return
	}
	gate, lost, index, ok := parseEntry(text)
	switch {
	case ok && v.o.Gate != "" && v.o.Gate != gate:
	case ok:
		v.entry(gate, lost, index, at, text)
	case line.Open && bytes.HasPrefix(text, []byte("{")):
		v.note("%s: half a line: it is being written, or a sudden end has cut it off", at)
	case isOldForm(text):
		if v.old++; v.old == 1 {
			v.oldAt = at
		}
	default:
		v.fault("%s: no record: the line has been added or changed", at)
	}
}

// isOldForm reports whether a line may be an entry of a version before the transparency log.
func isOldForm(text []byte) bool {
	return bytes.HasPrefix(text, []byte(`{"time":"`)) && bytes.Contains(text, []byte(`,"chain":"`)) && bytes.Contains(text, []byte(`,"hash":"`))
}

func (v *Verifier) entry(gate string, lost, index int64, at place, text []byte) {
	p, known := v.current[gate]
	if known && p == nil {
		return // of a log without a key
	}
	if p == nil {
		v.fault("%s: record %d of gate %s: no checkpoint line with an edge stands before it in this file: the beginning of the file is missing, or the record has been added", at, index, gate)
		return
	}
	v.Entries++
	v.Lost += lost
	if p.ended {
		v.fault("%s: record %d of log %s: the log has ended before it: the record has been added", at, index, p.log.name)
	}
	switch {
	case index == p.next:
	case index > p.next:
		p.broken = v.fault("%s: %s missing before record %d of log %s", at, entries(p.next, index-1), index, p.log.name)
	default:
		p.broken = v.fault("%s: record %d of log %s, where record %d is expected: it is there twice, has been added, or is not in its place", at, index, p.log.name, p.next)
		return
	}
	p.next, p.line = index+1, at.line
	hash := tlog.RecordHash(text)
	if p.broken == "" {
		p.tree.Append(hash)
		p.want()
	}
	written := writtenAt(text)
	if written.IsZero() {
		v.fault("%s: record %d of log %s has no time", at, index, p.log.name)
	}
	p.tail.add(written)
	if written.After(p.last) {
		p.last = written
	}
	if v.o.Leaf != nil {
		v.o.Leaf(p.log.name, index, hash, written)
	}
}

// want notes the root of the tree, if a known checkpoint is for it.
func (p *piece) want() {
	if p.log.wanted[p.tree.Size] {
		if p.known == nil {
			p.known = map[int64]tlog.Hash{}
		}
		p.known[p.tree.Size] = p.tree.Root()
	}
}

// writtenAt returns about when an entry was written, by its time and duration.
func writtenAt(text []byte) time.Time {
	value, _, _ := bytes.Cut(text[len(`{"time":"`):], []byte(`"`))
	at, err := time.Parse(time.RFC3339Nano, string(value))
	if err != nil {
		return time.Time{}
	}
	const member = `,"duration":`
	i := bytes.LastIndex(text, []byte(member))
	if i < 0 {
		return at
	}
	number := text[i+len(member):]
	if end := bytes.IndexAny(number, ",}"); end >= 0 {
		number = number[:end]
	}
	seconds, _ := strconv.ParseFloat(string(number), 64)
	return at.Add(time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second)))
}

// entries names entries, with their verb.
func entries(from, to int64) string {
	if from == to {
		return fmt.Sprintf("record %d is", from)
	}
	return fmt.Sprintf("records %d to %d are", from, to)
}
