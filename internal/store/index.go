package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"robotsgate/policy/snapshot"
)

// maxAnswers is how many superseded answers a file may have of each kind, with a body and without, so that
// failures don't push out rules. An origin that changes its robots.txt at every fetch, a day apart, has a year's.
const maxAnswers = 400

// A Reader reads what is in the segments, a snapshot.Archive. It knows where they have what the store still needs, which
// takes about 100 bytes of memory for an origin.
type Reader struct {
	dir  string
	keep time.Duration // of superseded answers

	mu       sync.RWMutex
	segments []*segment          // the oldest first
	records  map[id]record       // the last one of each key
	answers  map[id][]superseded // by the file that they were, the oldest first; those without a body by its complement
	origins  int64               // with a robots.txt, each for every asker
	named    map[id][]id         // keys by the bodies that their records have; nil: they have to be looked for
	sets     map[id][]id         // keys of sets by the file that they are of; nil: they have to be looked for
	lost     []string            // data files without an index file
}

// superseded is the key of an answer and when it was superseded, in Unix nanoseconds.
type superseded struct {
	at  int64
	key id
}

// An id is a part of a SHA-256: of a key, a file, a host or a body. Zero is none.
type id uint64

func idOf(text string) id {
	sum := sha256.Sum256([]byte(text))
	return id(binary.BigEndian.Uint64(sum[:]))
}

// bodyID returns the id of the body with a digest in hex; zero without one.
func bodyID(digest string) id {
	n, _ := strconv.ParseUint(digest[:min(16, len(digest))], 16, 64)
	return id(n)
}

// Read opens the snapshots in a folder, also while a gate uses it, and does not see later changes. The error is
// fs.ErrNotExist if there are none. Keep is that of [Limits].
func Read(dataDir string, keep time.Duration) (x *Reader, err error) {
	const most = 10
	for range most { // a gate may remove a segment meanwhile
		if x, err = openIndex(filepath.Join(dataDir, snapshotsDir), os.O_RDONLY, keep); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return nil, err
	}
	x.named = make(map[id][]id, len(x.records))
	sets := make(map[id][]id, len(x.records))
	for key, r := range x.records {
		x.named[r.text] = append(x.named[r.text], key)
	}
	for _, s := range x.segments {
		if err := s.scan(func(it item) bool {
			if it.kind != answer && x.records[it.key].place == it.place {
				sets[it.file] = append(sets[it.file], it.key)
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	x.sets = sets
	return x, nil
}

// openIndex reads the index files in a folder. Answers that were superseded for the time keep are no longer shown. All
// files are opened before they are read, so that a gate that removes one takes nothing away.
func openIndex(dir string, flag int, keep time.Duration) (_ *Reader, err error) {
	x := &Reader{dir: dir, keep: keep, answers: map[id][]superseded{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	files, err := os.ReadDir(dir) // sorted, and so the oldest first
	if err != nil {
		return nil, err
	}
	items := 0
	for _, file := range files {
		name, isData := strings.CutSuffix(file.Name(), dataSuffix)
		number, err := strconv.ParseUint(name, 10, 32)
		if !isData || err != nil || len(name) != len("00000001") {
			continue
		}
		s, err := openSegment(dir, uint32(number), flag)
		if _, errData := os.Stat(filepath.Join(dir, file.Name())); errors.Is(err, fs.ErrNotExist) && errData == nil {
			x.lost = append(x.lost, filepath.Join(dir, file.Name()))
			continue
		} else if err != nil {
			return nil, err
		}
		x.segments = append(x.segments, s)
		items += int(s.items)
	}
	x.records = make(map[id]record, items) // or else to grow it takes long
	for _, s := range x.segments {
		if err := s.scan(func(it item) bool { s.damaged--; x.add(&it); return true }); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Close closes the files.
func (x *Reader) Close() (err error) {
	for _, s := range x.segments {
		err = errors.Join(err, s.close())
	}
	return err
}

// segment returns the segment with a number.
func (x *Reader) segment(number uint32) *segment {
	i, _ := slices.BinarySearchFunc(x.segments, number, func(s *segment, number uint32) int { return cmp.Compare(s.number, number) })
	return x.segments[i]
}

// expired is the time until which superseded answers were kept long enough, in Unix nanoseconds.
func (x *Reader) expired() int64 { return time.Now().Add(-x.keep).UnixNano() }

// add takes up an item that follows all others.
func (x *Reader) add(it *item) {
	_, known := x.records[it.key]
	x.remove(it.key)
	if it.kind == forget {
		return
	}
	x.records[it.key] = it.record
	x.segment(it.segment).needed += it.bytes()
	switch {
	case it.kind == originSet:
		x.origins++
	case it.kind == answer && !known && it.text == 0: // if it is known it was only moved
		x.list(^it.file, superseded{it.at, it.key})
	case it.kind == answer && !known:
		x.list(it.file, superseded{it.at, it.key})
	}
}

// list adds a superseded answer to others. If they are too many, the oldest goes.
func (x *Reader) list(file id, s superseded) {
	all := x.answers[file]
	after := sort.Search(len(all), func(i int) bool { return all[i].at > s.at }) // most often all are before it
	all = slices.Insert(all, after, s)
	if len(all) > maxAnswers {
		x.remove(all[0].key)
		all = slices.Delete(all, 0, 1)
	}
	x.answers[file] = all
}

// remove removes the record of a key, if there is one. The list of answers is the caller's.
func (x *Reader) remove(key id) {
	r, ok := x.records[key]
	if !ok {
		return
	}
	if r.kind == originSet {
		x.origins--
	}
	x.segment(r.segment).needed -= r.bytes()
	delete(x.records, key)
}

// read reads a record: the JSON of its line, and its body.
func (x *Reader) read(r record, line any) (body []byte, err error) {
	data, err := x.segment(r.segment).read(r)
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(data[:r.line], castagnoli) != r.sum {
		return nil, errors.New("a line does not match its checksum")
	}
	return data[r.line:], json.Unmarshal(data[:r.line], line)
}

// A setLine is the JSON of a set. Its Last is left out if it is Good, and its Body follows the line.
type setLine struct {
	Key string `json:"key"`
	snapshot.DatedSet
}

// An answerLine is the JSON of a superseded answer.
type answerLine struct {
	Key string `json:"key"` // of the set
	snapshot.Answer
}

// load returns the set under the id of a key, an empty one if there is none. It may be that of another key, which has
// the same id, and its body may be damaged. The caller holds mu.
func (x *Reader) load(key id) (set setLine, err error) {
	r, ok := x.records[key]
	if !ok {
		return setLine{}, nil
	}
	body, err := x.read(r, &set)
	if err != nil {
		return setLine{}, err
	}
	if set.Last == nil {
		set.Last = set.Good // as for most origins, and so kept once
	}
	set.Body = body
	return set, nil
}
