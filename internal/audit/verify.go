package audit

import (
	"fmt"
	"time"
)

const (
	// maxRuns bounds the runs of all chains, and so the memory.
	maxRuns = 200_000
	// maxTexts bounds Faults and Notes each.
	maxTexts = 1000
)

// VerifyOptions say what records are compared with.
type VerifyOptions struct {
	Files   []string        // the lines are of these
	Heads   map[string]Head // of chains, read before the lines; nil: not available
	Expired map[string]Head // heads that have been removed, see [Expired]
	Keys    []Key           // that records may be made with
	// Gate is the gate that the heads are of; empty: not known. The chains of other gates can't be
	// compared with heads.
	Gate string
	// Only leaves out the records of gates other than Gate.
	Only bool
	// Guessed says that the heads may be those of other gates: it is no fault if no chain has
	// one.
	Guessed bool
	// Strict makes a chain that could not be compared with its head a fault.
	Strict bool
	// Keyless permits chains without a key although Keys are given.
	Keyless bool
	Words   VerifyWords
}

// VerifyWords is what the caller's users know these things by.
type VerifyWords struct {
	Folder    string // where heads are kept
	OtherGate string // how to verify the chains of another gate
	GiveHeads string // how to name that folder
	GiveKey   string // how to name a missing key
	NoKey     string // why a chain may have no key
}

// A Verifier checks that the records of gates are complete, in their order and unchanged. Line
// takes all lines, of the files in any order; then End completes the result.
type Verifier struct {
	Records   int
	Lost      int      // records that could not be written at the time, as other records say
	Before    int64    // records before the first ones, which may have been rotated away, see Notes
	Faults    []string // the first of them
	Faulty    int      // number of faults
	Notes     []string // what could not be checked, or deserves a look
	Unchecked int      // chains that could not be compared with their heads

	o          VerifyOptions
	keys       keyring
	later      map[string]Head // read after the lines
	firstLines map[string]int  // by file
	leftOut    int             // records of other gates
	chains     map[string]*chainRecords
	runs       int
}

// chainRecords are the records of a chain.
type chainRecords struct {
	keyID string
	gate  string
	count int
	runs  []run
	first time.Time // when the oldest was written
	// When the oldest and the newest of the records after the head were written.
	oldestAfter, newestAfter time.Time
}

// A run is records of one file that follow each other.
type run struct {
	file       string
	lines      [2]int   // first and last
	numbers    [2]int64 // first and last
	prev, hash string   // before the first, and of the last
	begins     bool     // the first states that it is the first of a file
	moved      bool     // the first states that it is the first of its chain in a file
}

// at names the first record of a run.
func (r *run) at() string { return fmt.Sprintf("%s:%d", r.file, r.lines[0]) }

// end names the last record of a run.
func (r *run) end() string { return fmt.Sprintf("%s:%d", r.file, r.lines[1]) }

// NewVerifier returns a verifier that has no lines yet.
func NewVerifier(o VerifyOptions) *Verifier {
	return &Verifier{o: o, keys: newKeyring(o.Keys...), firstLines: map[string]int{}, chains: map[string]*chainRecords{}}
}

func (v *Verifier) fault(format string, args ...any) {
	if v.Faulty++; len(v.Faults) < maxTexts {
		v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
	}
}

func (v *Verifier) note(format string, args ...any) {
	if len(v.Notes) < maxTexts {
		v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
	}
}

// unchecked notes that chains could not be compared with their heads.
func (v *Verifier) unchecked(chains int, format string, args ...any) {
	v.Unchecked += chains
	if v.o.Strict {
		v.fault(format, args...)
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
	case l.Half():
		v.note("%s: half a record: it is being written, or a sudden end has cut it off", l.At())
		return
	case r == nil:
		v.fault("%s: no record (%v): it has been added or changed", l.At(), l.Err)
		return
	case r.Chain == "" || r.Number < 1:
		v.fault("%s: a record without its place in a chain: it has been added or changed", l.At())
		return
	}
	if intact, known := v.keys.intact(l.Text, r.Key); known && !intact {
		v.fault("%s: record %d of chain %s has been changed", l.At(), r.Number, r.Chain)
	}
	if v.o.Only && v.isForeign(r.Chain, r.Gate) {
		v.leftOut++
		return
	}
	v.Records++
	v.Lost += r.Lost
	h, ok := v.head(r.Chain)
	if ok && h.Number == r.Number && h.Hash != r.Hash {
		v.fault("%s: record %d of chain %s is another than the one that was written", l.At(), r.Number, r.Chain)
	}
	c := v.chains[r.Chain]
	if c == nil {
		c = &chainRecords{keyID: r.Key, gate: r.Gate}
		v.chains[r.Chain] = c
	}
	if c.count++; r.Key != c.keyID {
		v.fault("%s: record %d of chain %s is not made with the key of others in it", l.At(), r.Number, r.Chain)
	}
	if r.Gate != "" && c.gate != r.Gate {
		v.fault("%s: record %d of chain %s names another gate than others in it", l.At(), r.Number, r.Chain)
	}
	at := r.written()
	c.first = earliest(c.first, at)
	if r.Number > h.Number {
		c.oldestAfter = earliest(c.oldestAfter, at)
		if at.After(c.newestAfter) {
			c.newestAfter = at
		}
	}
	v.addToRun(c, l)
}

// earliest returns the earlier of two times, a zero time being none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// addToRun adds a record to the last run of its chain, or begins another.
func (v *Verifier) addToRun(c *chainRecords, l *Line) {
	r := l.Record
	if n := len(c.runs); n > 0 && c.runs[n-1].file == l.File {
		last := &c.runs[n-1]
		if r.Number == last.numbers[1]+1 && r.Prev == last.hash {
			last.lines[1], last.numbers[1], last.hash = l.Number, r.Number, r.Hash
			return
		}
		if r.Number <= last.numbers[1] {
			v.fault("%s: record %d of chain %s stands behind record %d: it is there twice, or not in its place", l.At(), r.Number, r.Chain, last.numbers[1])
		}
	}
	if v.runs++; v.runs > maxRuns {
		return // a fault, see End
	}
	c.runs = append(c.runs, run{
		file: l.File, lines: [2]int{l.Number, l.Number}, numbers: [2]int64{r.Number, r.Number},
		prev: r.Prev, hash: r.Hash, begins: r.Begins, moved: r.Moved,
	})
}

// Later takes the heads as they are after the lines, since a gate may be running. The head of
// a chain that has begun since the first heads were read does not tell how far the chain had
// come when its records were read.
func (v *Verifier) Later(heads map[string]Head) {
	v.later = heads
	for name, h := range heads {
		if _, ok := v.o.Heads[name]; ok || v.chains[name] == nil {
			continue
		}
		if v.o.Heads == nil {
			v.o.Heads = map[string]Head{}
		}
		v.o.Heads[name] = Head{Chain: name, File: h.File, Stream: h.Stream}
	}
}

// head returns the last head of a chain, also if it has been removed. It is not ok if there
// is none that has a hash.
func (v *Verifier) head(chain string) (h Head, ok bool) {
	if h, ok = v.o.Heads[chain]; ok {
		return h, true
	}
	h = v.o.Expired[chain]
	return h, h.Hash != ""
}

// Chains returns the number of chains.
func (v *Verifier) Chains() int { return len(v.chains) }
