package evidence

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/keyfile"
)

// Options say which log is written.
type Options struct {
	Name  string       // of the log, without a suffix; see [CheckName]
	Gate  string       // the id of the gate
	Key   *keyfile.Key // signs checkpoints
	Place Place        // reads the entries
	Dir   string       // data_dir, which keeps the last checkpoint; empty: each start is a log of its own, NAME/ID
	Path  string       // of the file that is written
	// Files are that file and the rotated ones, the newest first.
	Files []string
}

// A Log makes the lines of a transparency log. It is for one goroutine.
type Log struct {
	*Signer
	Continues int64  // where the log goes on in the file, in bytes; 0: it begins a file
	Covered   int64  // size of the tree that the last checkpoint is for
	Broken    string // why an earlier log could not be continued; empty: it was, or this is the first
	Moved     string // where the log before was written, if it was not continued since the path is another now

	o       Options
	tree    Tree
	resumed int64 // entries that the next checkpoint covers first, of a gate that was killed
}

// OpenLog returns the log that continues what is in Files and Dir, or a new one.
func OpenLog(o Options) (*Log, error) {
	l := &Log{o: o}
	if o.Dir == "" {
		return l, l.begin(o.Name + "/" + strings.ToLower(rand.Text()))
	}
	return l, l.resume()
}

// begin names the log.
func (l *Log) begin(name string) (err error) {
	l.Signer, err = NewSigner(name, l.o.Key)
	return err
}

// Add adds the lines of entries to the log. They have their indices.
func (l *Log) Add(lines []byte) {
	for line := range bytes.Lines(lines) {
		l.tree.Append(tlog.RecordHash(bytes.TrimSuffix(line, []byte("\n"))))
	}
}

// Size returns the number of entries in the log.
func (l *Log) Size() int64 { return l.tree.Size }

// Checkpoint returns the line of a checkpoint that covers all entries, for a file with size bytes. The checkpoint is kept
// before: whatever has been published is known after a restart, so that no second tree gets the name of the log. End
// says that the gate ends.
func (l *Log) Checkpoint(size int64, end bool) ([]byte, error) {
	text, err := l.sign()
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	if l.o.Dir != "" {
		s := State{Note: text, Tree: &l.tree, Time: now, End: end, Path: l.o.Path, Size: size}
		if err := s.save(l.o.Dir); err != nil {
			return nil, fmt.Errorf("the checkpoint of the audit log can't be kept in data_dir: %w", err)
		}
	}
	line, err := json.Marshal(Line{Checkpoint: text, Time: now, Gate: l.o.Gate, End: end, Resumed: l.resumed})
	l.Covered, l.resumed = l.tree.Size, 0
	return append(line, '\n'), err
}

// sign returns a checkpoint of all entries.
func (l *Log) sign() (text string, err error) {
	c := torchwood.Checkpoint{Origin: l.Name(), Tree: tlog.Tree{N: l.tree.Size, Hash: l.tree.Root()}}
	signed, err := note.Sign(&note.Note{Text: c.String()}, l.Signer)
	return string(signed), err
}
