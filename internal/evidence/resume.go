package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

// resume finds the tree of the log again: from the checkpoint that is kept, and from the entries behind it. If
// entries that the checkpoint covers are missing, or others were added behind it, it begins a log with another name: there
// must never be two trees of one name.
func (l *Log) resume() error {
	text, s, err := loadState(l.o.Dir)
	if err != nil {
		return err
	}
	keys, err := l.keys()
	if err != nil {
		return err
	}
	r := resumption{base: l.o.Name, gate: l.o.Gate, keys: keys, latest: suffix(l.o.Name, Origin(text)), strange: -1}
	path := l.o.Path
	if c, err := keys.Open([]byte(text)); err == nil && suffix(l.o.Name, c.Origin) > 0 {
		r.kept, r.note = &c, text
		if s.Tree != nil && s.Tree.Size == c.N && s.Tree.Root() == c.Hash {
			r.state = s
		}
		if c.N > 0 {
			path = cmp.Or(r.state.Path, path)
		}
	}
	files := l.o.Files(path)
	switch {
	case len(files) > 0:
		if err := r.files(files); err != nil {
			return err
		}
	case path != l.o.Path: // the files have been moved, too
	case r.state.Tree != nil: // what a stream has taken behind the checkpoint is not known
		r.tree = r.state.Tree.Clone()
	case r.kept != nil:
		r.broken = "the end of " + CheckpointFile + " in data_dir is missing, or does not fit the checkpoint there"
	}
	switch {
	case r.broken != "":
	case path != l.o.Path:
		// A folder that was restored may not know of the last log that was begun here.
		here := resumption{base: r.base, gate: r.gate, keys: keys}
		if err := here.files(l.o.Files(l.o.Path)); err != nil {
			return err
		}
		l.moved, r.latest = path, max(r.latest, here.latest)
	case r.tree != nil:
		return l.goOn(&r)
	case text != "":
		r.broken = "the checkpoint in data_dir is not by this key, or is of a log with another name"
	case l.o.Known:
		r.broken = "neither the checkpoint in data_dir nor the records are there any more"
	default:
		return l.begin(l.o.Name, state{})
	}
	l.broken = r.broken
	return l.begin(l.o.Name+"/"+strconv.Itoa(max(r.latest, 1)+1), state{})
}

// goOn continues the log that was found.
func (l *Log) goOn(r *resumption) error {
	l.tree, l.resumed = r.tree, r.resumed
	if r.tree.Size == r.kept.N {
		l.note, l.covered = r.note, r.kept.N
	}
	return l.begin(r.kept.Origin, r.state)
}

// keys returns the key of the log and of those with suffixes.
func (l *Log) keys() (*Keys, error) {
	s, err := NewSigner(l.o.Name, l.o.Key)
	if err != nil {
		return nil, err
	}
	return ParseKeys([]string{s.Key()})
}

// suffix returns the number of a log among those of a name: 1 for NAME, N for NAME/N; 0: it is not one.
func suffix(name, log string) int {
	if log == name {
		return 1
	}
	text, ok := strings.CutPrefix(log, name+"/")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 2 || n > 1e9 || strconv.Itoa(n) != text {
		return 0
	}
	return n
}

// A resumption looks for the tree of a log.
type resumption struct {
	base string // the name of the log, without a suffix
	gate string
	keys *Keys
	kept *torchwood.Checkpoint // the one that is kept, if it is of the log; nil: only latest is looked for
	note string                // its text

	latest  int   // the highest suffix that is known
	state   state // that is kept, if it fits
	tree    *Tree // nil: not found
	strange int64 // index of the last of them that the gate can't have written; -1: there is none
	resumed int64
	broken  string // why it is not found, if there is a reason
}

// files looks for the tree in the newest file that has lines of the log.
func (r *resumption) files(files []string) error {
	for _, file := range files {
		found, err := r.file(file)
		if found || err != nil {
			return err
		}
	}
	switch {
	case r.kept != nil && r.kept.N == 0:
		r.tree = &Tree{}
	case r.kept != nil:
		r.broken = "no file of the log has the records that the checkpoint in data_dir covers: they were removed"
	}
	return nil
}

// file looks for the tree in a file. It reports whether that has lines of the log.
func (r *resumption) file(path string) (found bool, err error) {
	o := VerifyOptions{Keys: r.keys, Gate: r.gate}
	if r.kept != nil {
		o.Known = []Known{{Note: r.note}}
		o.Leaf = func(log string, index int64, hash tlog.Hash, written time.Time) {
			if log != r.kept.Origin || index < r.kept.N {
				return
			}
			if !r.state.mayHaveWritten(written) {
				r.strange = index
			}
		}
	}
	v, latest := NewVerifier(o), 0
	for line, err := range Lines(path, nil) {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, _, _, whole := parseEntry(line.Text); line.Open && !whole {
			break // half a line is removed before the next one is written; a whole one gets its end
		}
		v.Line(path, line)
		// Without a checkpoint, and with a new id of the gate, its lines are those with the name of the log.
		if c, ok := parseLine(line.Text); ok && (c.Gate == r.gate || r.kept == nil) {
			latest = max(latest, suffix(r.base, Origin(c.Checkpoint)))
		}
	}
	r.latest = max(r.latest, latest)
	if r.kept == nil {
		if latest > 0 {
			r.broken = path + " has records of this log, and data_dir has no checkpoint of it by this key"
		}
		return latest > 0, nil
	}
	p := v.log(r.kept.Origin).last()
	switch {
	case p == nil:
		return false, nil
	case p.tree.Size < r.kept.N:
		r.broken = fmt.Sprintf("%s ends with record %d, and a checkpoint covers %d: records were removed, or it is another file", path, p.tree.Size-1, r.kept.N)
	case suffix(r.base, p.log.name) < r.latest: // it has lost entries, which an old checkpoint can't tell
		r.broken = fmt.Sprintf("log %s has ended: another with a higher number after its name has begun since, and the checkpoint in data_dir is older", p.log.name)
	case p.broken != "":
		r.broken = p.broken
	case p.start <= r.kept.N && p.known[r.kept.N] != r.kept.Hash:
		r.broken = path + " does not fit the checkpoint in data_dir: records were changed, or it is another file"
	case r.strange >= p.covered:
		r.broken = fmt.Sprintf("%s has records behind the last checkpoint that the gate can't have written, such as record %d: it had ended before, or they are not of the last %v before a kill",
			path, r.strange, maxResumed)
	default:
		r.tree, r.resumed = p.tree, min(p.tree.Size-p.covered, p.tree.Size-r.kept.N)
	}
	return true, nil
}
