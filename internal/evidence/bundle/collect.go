package bundle

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
)

// A Collector takes the lines of logs, and keeps what a bundle needs of them: the selected entries and the
// nodes of all trees, in temporary files. It verifies nothing: an evidence.Verifier takes each line before, and calls
// Leaf and Node.
type Collector struct {
	filter *audit.Filter
	period audit.Filter // of the filter only its times

	dir     string // temporary
	hashes  *hashFile
	file    *os.File // the selected entries
	entries *bufio.Writer
	bytes   int64
	picks   []pick

	logs  map[string]*logPart
	order []*logPart
	last  pick // the leaf that Leaf has named last
	named bool // that leaf is the next entry
	err   error
}

// A pick is the place of a selected entry.
type pick struct {
	log   int
	index int64
}

// A logPart is what is known of one log.
type logPart struct {
	number   int
	Name     string
	Best     evidence.Checkpoint // see cover
	Period   span                // of its entries in the period of the selection
	Selected int64               // entries in the bundle
}

// A span is a range of the entries of a log.
type span struct {
	First, Last int64 // indexes
	Entries     int64
}

func (s *span) add(index int64) {
	if s.Entries == 0 {
		s.First, s.Last = index, index
	}
	s.First, s.Last = min(s.First, index), max(s.Last, index)
	s.Entries++
}

// NewCollector returns a Collector of the entries that a filter selects. Close removes its temporary files.
func NewCollector(filter *audit.Filter) (*Collector, error) {
	dir, err := os.MkdirTemp("", "robotsgate-")
	if err != nil {
		return nil, err
	}
	c := &Collector{
		filter: filter, period: audit.Filter{Since: filter.Since, Until: filter.Until},
		dir: dir, logs: map[string]*logPart{},
	}
	if c.hashes, err = newHashFile(dir); err == nil {
		c.file, err = os.CreateTemp(dir, "records-*")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.entries = bufio.NewWriterSize(c.file, 1<<20)
	return c, nil
}

// Close removes the temporary files.
func (c *Collector) Close() error {
	if c.hashes != nil {
		c.hashes.file.Close()
	}
	if c.file != nil {
		c.file.Close()
	}
	return os.RemoveAll(c.dir)
}

// Leaf takes the place of an entry and its hash. Line takes the entry itself next.
func (c *Collector) Leaf(log string, index int64, hash tlog.Hash, _ time.Time) {
	c.Node(log, tlog.StoredHashIndex(0, index), hash)
	c.last, c.named = pick{c.log(log).number, index}, true
}

// Node takes a node of a log's tree.
func (c *Collector) Node(log string, index int64, hash tlog.Hash) {
	c.hashes.add(c.log(log).number, index, hash)
}

func (c *Collector) log(name string) *logPart {
	l := c.logs[name]
	if l == nil {
		l = &logPart{number: len(c.order), Name: name}
		c.logs[name], c.order = l, append(c.order, l)
	}
	return l
}

// Line takes a line, without its end. It returns an error if the selection has become too large.
func (c *Collector) Line(text []byte) error {
	if c.err != nil {
		return c.err
	}
	if !c.named {
		return nil
	}
	c.named = false
	if r, err := parseEntry(text); err == nil {
		c.entry(r, text)
	}
	return c.err
}

func (c *Collector) entry(r *audit.Entry, text []byte) {
	log := c.order[c.last.log]
	if c.period.Selects(r) {
		log.Period.add(c.last.index)
	}
	if !c.filter.Selects(r) {
		return
	}
	c.bytes += int64(len(text)) + 1
	switch {
	case len(c.picks) == maxEntries:
		c.err = tooLarge("more than %d records", maxEntries)
		return
	case c.bytes > maxMember:
		c.err = tooLarge("more than %d MiB of records", maxMember>>20)
		return
	}
	c.picks = append(c.picks, c.last)
	_ = writeLine(c.entries, text) // Flush returns the error
}

// cover chooses the checkpoint of each log: of those that cover all selected entries that any covers, the one with
// the most cosignatures. It returns how many selected entries none covers.
func (c *Collector) cover(logs []evidence.Report) (uncovered int) {
	newest := make([]int64, len(c.order))
	for _, r := range logs {
		for _, p := range r.Checkpoints {
			n := c.log(r.Name).number
			if n < len(newest) { // else it has no entries
				newest[n] = max(newest[n], min(p.Size, maxTree))
			}
		}
	}
	needed := make([]int64, len(c.order))
	for _, p := range c.picks {
		if p.index >= newest[p.log] {
			uncovered++
			continue
		}
		c.order[p.log].Selected++
		needed[p.log] = max(needed[p.log], p.index+1)
	}
	for _, r := range logs {
		l := c.log(r.Name)
		for _, p := range r.Checkpoints { // ascending by cosignatures
			if l.Selected > 0 && p.Size >= needed[l.number] && p.Size <= maxTree {
				l.Best = p
			}
		}
	}
	return uncovered
}

// covered reports whether the checkpoint of its log covers an entry.
func (c *Collector) covered(p pick) bool { return p.index >= 0 && p.index < c.order[p.log].Best.Size }

// prove returns a function that makes the proof of an entry that is covered.
func (c *Collector) prove() (func(p pick, leaf []byte) (tlog.RecordProof, error), error) {
	wanted := make([]nodes, len(c.order))
	for i := range wanted {
		wanted[i] = nodes{}
	}
	for _, p := range c.picks {
		if !c.covered(p) {
			continue
		}
		if err := wanted[p.log].want(c.order[p.log].Best.Size, p.index); err != nil {
			return nil, err
		}
	}
	if err := c.hashes.fill(wanted); err != nil {
		return nil, err
	}
	return func(p pick, leaf []byte) (tlog.RecordProof, error) {
		best := &c.order[p.log].Best
		hashes, err := tlog.ProveRecord(best.Size, p.index, wanted[p.log])
		if err == nil {
			err = tlog.CheckRecord(hashes, best.Size, best.Root, p.index, tlog.RecordHash(leaf))
		}
		return hashes, err
	}, nil
}

// each calls do for every selected entry that is covered, in the order in which they were read.
func (c *Collector) each(do func(n int, p pick, text []byte) error) error {
	if err := c.entries.Flush(); err != nil {
		return err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c.file, 2*evidence.MaxLine)
	for n, p := range c.picks {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if !c.covered(p) {
			continue
		}
		if err := do(n, p, bytes.TrimSuffix(text, []byte("\n"))); err != nil {
			return err
		}
	}
	return nil
}

// Selected returns the number of entries that are selected.
func (c *Collector) Selected() int { return len(c.picks) }

// Proof returns the proof of the first selected entry (c2sp.org/tlog-proof@v1). Logs are what the verifier has found.
// The error is ErrUncovered if no checkpoint covers it yet.
func (c *Collector) Proof(logs []evidence.Report) (text []byte, err error) {
	c.cover(logs)
	prove, err := c.prove()
	if err != nil {
		return nil, err
	}
	err = c.each(func(_ int, p pick, leaf []byte) error {
		if hashes, err := prove(p, leaf); err == nil && text == nil { // else the entry is not in the tree: see cutTail
			text = torchwood.FormatProof(p.index, hashes, []byte(c.order[p.log].Best.Note))
		}
		return nil
	})
	if err == nil && text == nil {
		err = ErrUncovered
	}
	return text, err
}

// ErrUncovered says that no checkpoint covers the selected entries.
var ErrUncovered = errors.New("no checkpoint covers what is selected: a gate that runs adds one within a second, and one that was killed at its next start")
