package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

// resume finds the tree of the log again: from the checkpoint that is kept, and from the entries behind it. If
// entries that the checkpoint covers are missing, it begins a log with another name: there must never be two
// trees of one name.
func (l *Log) resume() error {
	text, states, err := loadState(l.o.Dir)
	if err != nil {
		return err
	}
	keys, err := l.keys()
	if err != nil {
		return err
	}
	r := resumption{base: l.o.Name, gate: l.o.Gate, keys: keys, latest: suffix(l.o.Name, Origin(text))}
	if c, _, err := keys.Open([]byte(text)); err == nil && suffix(l.o.Name, c.Origin) > 0 {
		r.kept, r.note = &c, text
	}
	var kept *state
	for i, s := range states {
		r.latest = max(r.latest, suffix(l.o.Name, s.Log))
		if kept == nil && r.kept != nil && s.Log == r.kept.Origin && s.Tree.Size == r.kept.N && s.Tree.Root() == r.kept.Hash {
			kept = &states[i]
		}
	}
	switch {
	case l.o.Files != nil:
		if err := r.files(l.o.Files); err != nil {
			return err
		}
	case kept != nil: // what a stream has taken behind the checkpoint is not known
		r.tree, r.name = kept.Tree.Clone(), kept.Log
	case r.kept != nil:
		r.broken = edgeFile + " in data_dir is missing, or does not fit the checkpoint there"
	}
	switch {
	case r.tree != nil:
		return l.goOn(&r, kept)
	case r.broken != "":
	case text != "":
		r.broken = "the checkpoint in data_dir is not by this key, or is of a log with another name"
	case r.latest > 0 || l.o.Known:
		r.broken = "neither the checkpoint in data_dir nor the records are there any more"
	default:
		return l.begin(l.o.Name, state{}, nil)
	}
	l.broken = r.broken
	return l.begin(l.o.Name+"/"+strconv.Itoa(max(r.latest, 1)+1), state{}, nil)
}

// goOn continues the log that was found.
func (l *Log) goOn(r *resumption, kept *state) error {
	l.tree, l.resumed = r.tree, r.resumed
	if r.kept != nil && r.tree.Size == r.kept.N {
		l.note, l.covered = r.note, r.kept.N
	}
	if kept == nil {
		return l.begin(r.name, state{}, nil)
	}
	var err error
	if l.kept, err = json.Marshal(kept); err != nil {
		return err
	}
	return l.begin(r.name, *kept, r.tail)
}

// keys returns the key of the log and of those with suffixes.
func (l *Log) keys() (*Keys, error) {
	s, err := NewSigner(l.o.Name, l.o.Key)
	if err != nil {
		return nil, err
	}
	return ParseKeys([]string{s.Key()}, nil)
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
	kept *torchwood.Checkpoint // the one that is kept, if it is of the log
	note string                // its text

	latest  int         // the highest suffix that is known
	tree    *Tree       // nil: not found
	name    string      // of its log
	tail    []tlog.Hash // the entries behind the checkpoint that is kept
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
		r.tree, r.name = &Tree{}, r.kept.Origin
	case r.kept != nil:
		r.broken = "no file of the log has the records that the checkpoint in data_dir covers: they were removed, or log.audit names another file"
	}
	return nil
}

// file looks for the tree in a file. It reports whether that has lines of the log.
func (r *resumption) file(path string) (found bool, err error) {
	o := VerifyOptions{Keys: r.keys, Gate: r.gate}
	if r.kept != nil {
		o.Known = []Known{{Note: r.note}}
		o.Leaf = func(log string, index int64, hash tlog.Hash) {
			if log == r.kept.Origin && index >= r.kept.N {
				r.tail = append(r.tail, hash)
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
	p := v.current[r.gate]
	if r.kept != nil {
		p = v.log(r.kept.Origin).last()
	}
	switch {
	case p == nil && (latest == 0 || r.kept != nil):
		return false, nil
	case p == nil || suffix(r.base, p.log.name) == 0:
		r.broken = path + " is of a log with another key, or of another gate with this name"
	case r.kept != nil && p.tree.Size < r.kept.N:
		r.broken = fmt.Sprintf("%s ends with record %d, and a checkpoint covers %d: records were removed, or it is another file", path, p.tree.Size-1, r.kept.N)
	case suffix(r.base, p.log.name) < r.latest: // it has lost entries, which an old checkpoint can't tell
		r.broken = fmt.Sprintf("log %s has ended: another with a higher number after its name has begun since, and the checkpoint in data_dir is older", p.log.name)
	case p.broken != "":
		r.broken = p.broken
	case r.kept != nil && p.start <= r.kept.N && p.known[r.kept.N] != r.kept.Hash:
		r.broken = path + " does not fit the checkpoint in data_dir: records were changed, or it is another file"
	default:
		r.tree, r.name, r.resumed = p.tree, p.log.name, p.tree.Size-p.covered
		if r.kept != nil {
			r.resumed = min(r.resumed, p.tree.Size-r.kept.N)
		}
	}
	return true, nil
}
