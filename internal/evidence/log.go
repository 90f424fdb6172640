package evidence

import (
	"bytes"
	"fmt"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/keyfile"
)

// Options say which log is written.
type Options struct {
	Name string       // of the log, without a suffix; see [CheckName]
	Gate string       // the id of the gate
	Key  *keyfile.Key // signs checkpoints
	// Known says that there has been a log by this key.
	Known bool
	Dir   string // data_dir, which keeps the last checkpoint
	// Ends is set for a gate that does not own data_dir: its log has a name of its own, and is not continued.
	Ends bool
	Keep time.Duration // how long the last checkpoints of such logs are kept
	Path string        // where the log is written
	// Files returns the files of the log at a path, the newest first; none: it is written to a stream, or there is no file.
	Files func(path string) []string
}

// A Log makes the lines of a transparency log. It is for one goroutine.
type Log struct {
	o       Options
	signer  *Signer
	tree    *Tree
	note    string    // the last checkpoint; empty: there is none yet
	covered int64     // size of the tree that it is for
	state   state     // that is kept with it
	resumed int64     // entries that the next checkpoint covers first, of a gate that was killed
	broken  string    // why the log could not be continued; empty: it was, or is the first
	moved   string    // where the log before was written, if that was elsewhere
	ended   time.Time // when the checkpoint was added to EndedFile
}

// OpenLog returns the log that continues what is in Files and Dir, or a new one.
func OpenLog(o Options) (*Log, error) {
	l := &Log{o: o, tree: &Tree{}}
	var err error
	if o.Ends {
		err = l.begin(o.Name+"/"+o.Gate, state{})
	} else {
		err = l.resume()
	}
	if err != nil || l.Covered() {
		return l, err
	}
	return l, l.cover(time.Now().UTC(), false)
}

// begin names the log. Kept is what was known with the last checkpoint.
func (l *Log) begin(name string, kept state) (err error) {
	l.state = kept
	l.state.Path = l.o.Path
	l.signer, err = NewSigner(name, l.o.Key)
	return err
}

// Key returns the verifier key of the log.
func (l *Log) Key() string { return l.signer.Key() }

// Name returns the name of the log.
func (l *Log) Name() string { return l.signer.Name() }

// Broken says why an earlier log could not be continued. It is empty if it was, or if there is none.
func (l *Log) Broken() string { return l.broken }

// Moved returns where the log before was written, if it was not continued since the path is another now.
func (l *Log) Moved() string { return l.moved }

// Add adds the lines of entries to the log. [AppendEntry] has made them.
func (l *Log) Add(lines []byte) {
	for line := range bytes.Lines(lines) {
		l.tree.Append(tlog.RecordHash(bytes.TrimSuffix(line, []byte("\n"))))
	}
}

// Size returns the number of entries in the log.
func (l *Log) Size() int64 { return l.tree.Size }

// Covered reports whether a checkpoint covers all entries.
func (l *Log) Covered() bool { return l.note != "" && l.covered == l.tree.Size }

// Resumed returns how many entries of a gate that was killed the next checkpoint line covers first.
func (l *Log) Resumed() int64 { return l.resumed }

// Checkpoint returns the line of a checkpoint that covers all entries. The checkpoint is kept before: whatever has
// been published is known after a restart, so that no second tree gets the name of the log. First says that the
// line is the first of the log in a file, end that the gate ends.
func (l *Log) Checkpoint(first, end bool) ([]byte, error) {
	now := time.Now().UTC()
	if err := l.cover(now, end); err != nil {
		return nil, err
	}
	line := Line{Checkpoint: l.note, Time: now, Gate: l.o.Gate, End: end, Resumed: l.resumed}
	if first {
		line.Edge = l.tree.Clone().Hashes
	}
	l.resumed = 0
	return line.AppendTo(nil), nil
}

// cover signs and keeps a checkpoint of all entries.
func (l *Log) cover(now time.Time, end bool) (err error) {
	text := l.note
	if !l.Covered() {
		if text, err = l.sign(); err != nil {
			return err
		}
	}
	l.state.Time, l.state.End = now, end
	if l.o.Ends {
		err = l.keepEnded(text, end)
	} else {
		err = l.keep(text)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint of the audit log can't be kept in data_dir: %w", err)
	}
	l.note, l.covered = text, l.tree.Size
	return nil
}

// sign returns a checkpoint of all entries.
func (l *Log) sign() (text string, err error) {
	c := torchwood.Checkpoint{Origin: l.Name(), Tree: tlog.Tree{N: l.tree.Size, Hash: l.tree.Root()}}
	signed, err := note.Sign(&note.Note{Text: c.String()}, l.signer)
	return string(signed), err
}

// keep keeps a checkpoint, and the state to go on from it.
func (l *Log) keep(text string) error {
	l.state.Tree = l.tree
	return l.state.save(l.o.Dir, text)
}
