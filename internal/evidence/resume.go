package evidence

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

// resume finds the tree of the log again: from the checkpoint that is kept, and from the records behind it. If
// records that the checkpoint covers are missing, it begins a log with another name: there must never be two
// trees of one name.
func (l *Log) resume() error {
	text, last, err := loadState(l.o.Dir)
	if err != nil {
		return err
	}
	keys, err := l.keys()
	if err != nil {
		return err
	}
	r := resumption{base: l.o.Name, last: last, latest: suffix(l.o.Name, Origin(text))}
	for _, s := range last {
		r.latest = max(r.latest, suffix(l.o.Name, s.Log))
	}
	if r.kept, _, err = keys.Open([]byte(text)); err == nil && suffix(l.o.Name, r.kept.Origin) > 0 {
		r.isKept = true
	}
	if l.o.Files == nil {
		r.stream()
	} else if err := r.files(l.o.Files, l.o.Gate, keys); err != nil {
		return err
	}
	switch {
	case r.tree != nil:
		l.tree, l.resumed, l.last = r.tree, r.resumed, last
		if r.isKept && r.tree.Size() == r.kept.N {
			l.note, l.covered = text, r.kept.N
		}
		var before []witnessState
		for _, s := range last {
			if r.isKept && s.Log == r.name && s.Size == r.kept.N {
				before = s.Witnesses
			}
		}
		return cmp.Or(l.rename(r.name), l.openWitnesses(before, r.kept.N, r.tail))
	case r.broken != "":
	case text != "":
		r.broken = "the checkpoint in data_dir is not by this key, or is of a log with another name"
	case r.latest > 0 || l.o.Known:
		r.broken = "neither the checkpoint in data_dir nor the records are there any more"
	default:
		return cmp.Or(l.rename(l.o.Name), l.openWitnesses(nil, 0, nil))
	}
	l.broken = r.broken
	return cmp.Or(l.rename(l.o.Name+"/"+strconv.Itoa(max(r.latest, 1)+1)), l.openWitnesses(nil, 0, nil))
}

// keys returns the key of the log and of those with suffixes.
func (l *Log) keys() (*Keys, error) {
	s, err := NewSigner(l.o.Name, l.o.Key.Public(), l.o.Key.Sign)
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
	base   string  // the name of the log, without a suffix
	last   []state // the states that are kept
	isKept bool
	kept   torchwood.Checkpoint // that is kept

	latest  int         // the highest suffix that is known
	tree    *Tree       // nil: not found
	name    string      // of its log
	tail    []tlog.Hash // the records behind the checkpoint that is kept
	resumed int64
	broken  string // why it is not found, if there is a reason
}

// stream takes the tree from data_dir alone: what a stream has taken is not known.
func (r *resumption) stream() {
	if !r.isKept {
		return
	}
	for _, s := range r.last {
		t, err := NewTree(s.Size, s.Edge)
		if err == nil && s.Log == r.kept.Origin && s.Size == r.kept.N && t.Root() == r.kept.Hash {
			r.tree, r.name = t, s.Log
			return
		}
	}
	r.broken = edgeFile + " in data_dir is missing, or does not fit the checkpoint there"
}

// files looks for the tree in the newest file that has lines of the log.
func (r *resumption) files(files []string, gate string, keys *Keys) error {
	for _, file := range files {
		s := scanner{base: r.base, gate: gate, keys: keys}
		if r.isKept {
			s.want, s.at = r.kept.Origin, r.kept.N
		}
		if err := s.file(file); err != nil {
			return err
		}
		r.latest = max(r.latest, s.latest)
		if s.tree == nil && (s.latest == 0 || r.isKept) {
			continue // it has no line of the log
		}
		switch {
		case s.tree == nil:
			r.broken = file + " is of a log with another key"
		case s.fault != "":
			r.broken = file + " " + s.fault
		case r.isKept && s.tree.Size() < r.kept.N:
			r.broken = fmt.Sprintf("%s ends with record %d, and a checkpoint covers %d: records were removed, or it is another file", file, s.tree.Size()-1, r.kept.N)
		case r.isKept && s.from <= r.kept.N && s.root != r.kept.Hash:
			r.broken = file + " does not fit the checkpoint in data_dir: records were changed, or it is another file"
		default:
			r.tree, r.name, r.tail, r.resumed = s.tree, s.name, s.tail, s.tree.Size()-max(s.covered, s.at)
		}
		return nil
	}
	switch {
	case r.isKept && r.kept.N == 0:
		r.tree, r.name = &Tree{}, r.kept.Origin
	case r.isKept:
		r.broken = "no file of the log has the records that the checkpoint in data_dir covers: they were removed, or log.audit names another file"
	}
	return nil
}

// A scanner reads the lines of a gate in one file of its log, and builds the tree of the log that is wanted.
type scanner struct {
	base, gate string
	keys       *Keys
	want       string // name of the log; empty: the last in the file
	at         int64  // the size for which root is wanted

	latest  int         // the highest suffix of a log in the file, which nothing has verified
	name    string      // of the log
	tree    *Tree       // nil: no line of the log with an edge
	from    int64       // size of the tree before its first record here
	covered int64       // by the last checkpoint
	root    tlog.Hash   // of the tree with the size at
	tail    []tlog.Hash // the records from index at on
	fault   string      // the first
}

func (s *scanner) file(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	member := []byte(`"gate":"` + s.gate + `"`)
	for {
		text, err := r.ReadSlice('\n')
		for err == bufio.ErrBufferFull { // no gate writes such a line
			text = nil
			_, err = r.ReadSlice('\n')
		}
		if err == io.EOF {
			return nil // half a line is removed before the next one is written
		}
		if err != nil {
			return err
		}
		if bytes.Contains(text, member) {
			s.line(bytes.TrimSuffix(text, []byte("\n")))
		}
	}
}

func (s *scanner) line(text []byte) {
	if IsCheckpoint(text) {
		var c Line
		if json.Unmarshal(text, &c) == nil && c.Gate == s.gate {
			s.checkpoint(&c)
		}
		return
	}
	gate, _, index, ok := parseRecord(text)
	if !ok || gate != s.gate || s.tree == nil {
		return
	}
	if index != s.tree.Size() && s.fault == "" {
		s.fault = fmt.Sprintf("has record %d where record %d is expected", index, s.tree.Size())
	}
	leaf := tlog.RecordHash(text)
	if index >= s.at {
		s.tail = append(s.tail, leaf)
	}
	s.tree.Append(leaf)
	s.mark()
}

func (s *scanner) checkpoint(c *Line) {
	origin := Origin(c.Checkpoint)
	n := suffix(s.base, origin)
	if s.latest = max(s.latest, n); n == 0 {
		return
	}
	if s.want != "" && s.want != origin {
		if c.Edge != nil {
			s.tree = nil // the records that follow are of another log
		}
		return
	}
	p, _, err := s.keys.Open([]byte(c.Checkpoint))
	if err != nil {
		return
	}
	if c.Edge != nil {
		t, err := NewTree(p.N, c.Edge)
		if err != nil || t.Root() != p.Hash {
			return
		}
		switch {
		case s.tree == nil || s.tree.Size() != t.Size() || s.name != origin:
			s.from, s.fault = p.N, ""
		case s.tree.Root() != t.Root():
			s.fault = cmp.Or(s.fault, fmt.Sprintf("does not fit its checkpoint of %d records: records were changed", p.N))
		}
		s.tree, s.name = t, origin
		s.mark()
	}
	if s.tree == nil {
		return
	}
	if p.N == s.tree.Size() && p.Hash != s.tree.Root() && s.fault == "" {
		s.fault = fmt.Sprintf("does not fit its checkpoint of %d records: records were changed", p.N)
	}
	s.covered = max(s.covered, p.N)
}

// mark notes the root that is wanted.
func (s *scanner) mark() {
	if s.tree.Size() == s.at {
		s.root = s.tree.Root()
	}
}
