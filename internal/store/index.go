package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxAnswers is how many superseded answers a file may have of each kind, with a body and without, so that
// failures don't push out rules. An origin that changes its robots.txt at every fetch, a day apart, has a year's.
const maxAnswers = 400

// A Reader reads what is in the segments, a snapshot.Archive. It knows where they have what the store still needs, which takes
// about 150 bytes of memory for an origin.
type Reader struct {
	dir  string
	keep time.Duration // of superseded answers

	mu       sync.RWMutex
	segments []*segment          // the oldest first
	lines    map[id]line         // by key
	bodies   map[id]body         // also some that no line names any more
	answers  map[id][]superseded // by the file that they were, the oldest first
	count    int                 // of superseded answers
	origins  int64               // with a robots.txt; for configured crawlers and for other clients they count as two
	gone     int                 // lines that are no longer needed, since they were last looked for
}

// A line is where the last line of a key is.
type line struct {
	place
	length, sum uint32
	kind        kind
	text        id // the body that it names
}

// A body is where a body is.
type body struct {
	place  // its segment is 0 if there is none
	length uint32
}

// superseded is the key of an answer and when it was superseded, in Unix nanoseconds.
type superseded struct {
	at  int64
	key id
}

// openIndex reads the index files in a folder. Answers that were superseded for the time keep are no longer shown.
func openIndex(dir string, flag int, keep time.Duration) (*Reader, error) {
	x := &Reader{dir: dir, keep: keep, lines: map[id]line{}, bodies: map[id]body{}, answers: map[id][]superseded{}}
	if err := x.open(flag); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// open opens all files before it reads, so that a gate that removes one takes nothing away.
func (x *Reader) open(flag int) error {
	files, err := os.ReadDir(x.dir) // sorted, and so the oldest first
	if err != nil {
		return err
	}
	items, last := 0, ""
	for _, file := range files {
		name, isData := strings.CutSuffix(file.Name(), dataSuffix)
		if index, ok := strings.CutSuffix(file.Name(), indexSuffix); ok && index != last && flag&os.O_CREATE != 0 {
			_ = os.Remove(filepath.Join(x.dir, file.Name())) // a kill has left it without its data
		}
		last = name
		number, err := strconv.ParseUint(name, 10, 32)
		if !isData || err != nil {
			continue
		}
		s, err := openSegment(x.dir, uint32(number), flag)
		if err != nil {
			return err
		}
		x.segments = append(x.segments, s)
		items += int(s.items)
	}
	x.lines, x.bodies = make(map[id]line, items), make(map[id]body, items) // or else to grow them takes long
	for _, s := range x.segments {
		if err := s.scan(func(it item) bool { s.damaged--; x.add(&it); return true }); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the files.
func (x *Reader) Close() (err error) {
	for _, s := range x.segments {
		err = errors.Join(err, s.close())
	}
	return err
}

// segment returns the segment with a number, nil if there is none.
func (x *Reader) segment(number uint32) *segment {
	i := sort.Search(len(x.segments), func(i int) bool { return x.segments[i].number >= number })
	if i == len(x.segments) || x.segments[i].number != number {
		return nil
	}
	return x.segments[i]
}

// expired is the time until which superseded answers were kept long enough, in Unix nanoseconds.
func (x *Reader) expired() int64 { return time.Now().Add(-x.keep).UnixNano() }

// add takes up an item that follows all others.
func (x *Reader) add(it *item) {
	if it.hasBody {
		x.bodies[it.text] = body{it.end(), it.body}
	}
	switch it.kind {
	case orphan:
		return
	case forget:
		x.remove(it.key)
		return
	}
	_, known := x.lines[it.key]
	x.lines[it.key] = line{it.place, it.line, it.sum, it.kind, it.text}
	switch {
	case known: // a set is replaced, or an answer was moved
		x.gone++
	case it.kind == originSet:
		x.origins++
	case it.kind == answer:
		x.count++
		x.list(it.file, superseded{it.at, it.key})
	}
}

// list adds a superseded answer to those of its file. If there are too many of its kind, the oldest goes.
func (x *Reader) list(file id, s superseded) {
	all := x.answers[file]
	after := sort.Search(len(all), func(i int) bool { return all[i].at > s.at }) // most often all are before it
	all = slices.Insert(all, after, s)
	n, first, withBody := 0, 0, x.lines[s.key].text != 0
	for i, s := range slices.Backward(all) {
		if (x.lines[s.key].text != 0) == withBody {
			n, first = n+1, i
		}
	}
	if n > maxAnswers {
		x.remove(all[first].key)
		all = slices.Delete(all, first, first+1)
	}
	x.answers[file] = all
}

// remove removes the line of a key, if there is one. The list of answers is the caller's.
func (x *Reader) remove(key id) {
	x.gone++
	switch x.lines[key].kind {
	case originSet:
		x.origins--
	case answer:
		x.count--
	}
	delete(x.lines, key)
}

// bytes is the size of all files.
func (x *Reader) bytes() (n int64) {
	for _, s := range x.segments {
		n += s.bytes()
	}
	return n
}
