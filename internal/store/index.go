package store

import (
	"cmp"
	"errors"
	"os"
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

// A Reader reads what is in the segments, a policy.Archive. It knows where they have what the store still needs, which takes
// about 150 bytes of memory for an origin.
type Reader struct {
	dir     string
	keep    time.Duration // of superseded answers
	opening bool          // lines may follow that name a body

	mu       sync.RWMutex
	segments []*segment   // the oldest first
	lines    map[id]line  // by key
	bodies   map[id]body  // that lines name
	answers  map[id][]id  // the keys of superseded answers, by their file
	oldest   []superseded // the same, the oldest first, and some that are gone
	count    int          // of superseded answers
	origins  int64        // with a robots.txt; for configured crawlers and for other clients they count as two
}

// A line is where the last line of a key is.
type line struct {
	place
	length, sum uint32
	kind        kind
	text        id // the body that it names
}

// A body is where a body is. It goes when no line names it any more.
type body struct {
	place         // its segment is 0 if there is none
	length, lines uint32
}

// superseded is when an answer was superseded.
type superseded struct {
	at        int64 // Unix nanoseconds
	file, key id
}

// openIndex reads the index files in a folder. Answers that were superseded for the time keep are left out.
func openIndex(dir string, flag int, keep time.Duration) (*Reader, error) {
	x := &Reader{dir: dir, keep: keep, lines: map[id]line{}, bodies: map[id]body{}, answers: map[id][]id{}}
	if err := x.open(flag); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	x.removeExpired()
	return x, nil
}

// removeExpired removes the answers that were kept long enough.
func (x *Reader) removeExpired() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removeAnswers(x.count, time.Now().Add(-x.keep).UnixNano())
}

// open opens all files before it reads, so that a gate that removes one takes nothing away.
func (x *Reader) open(flag int) error {
	files, err := os.ReadDir(x.dir) // sorted, and so the oldest first
	if err != nil {
		return err
	}
	for _, file := range files {
		name, isData := strings.CutSuffix(file.Name(), dataSuffix)
		number, err := strconv.ParseUint(name, 10, 32)
		if !isData || err != nil {
			continue
		}
		s, err := openSegment(x.dir, uint32(number), flag)
		if err != nil {
			return err
		}
		x.segments = append(x.segments, s)
	}
	items := 0
	for _, s := range x.segments {
		items += int(s.items)
	}
	x.lines, x.bodies = make(map[id]line, items), make(map[id]body, items) // or else to grow them takes half of the time
	x.opening = true
	for _, s := range x.segments {
		s.damaged = s.items
		if s.items == 0 && s.size > 0 { // the index file was lost
			s.damaged = 1
		}
		if err := s.scan(func(it item) bool { s.damaged--; x.add(&it); return true }); err != nil {
			return err
		}
	}
	x.opening = false
	for text := range x.bodies {
		x.removeUnnamed(text)
	}
	slices.SortFunc(x.oldest, func(a, b superseded) int { return cmp.Compare(a.at, b.at) })
	for _, s := range slices.Clone(x.oldest) {
		x.list(s)
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
	i, ok := slices.BinarySearchFunc(x.segments, number, func(s *segment, n uint32) int { return cmp.Compare(s.number, n) })
	if !ok {
		return nil
	}
	return x.segments[i]
}

// need counts bytes of a segment as needed, or no longer.
func (x *Reader) need(segment uint32, n int64) {
	if s := x.segment(segment); s != nil {
		s.needed += n
	}
}

// add takes up an item that follows all others.
func (x *Reader) add(it *item) {
	if it.text != 0 {
		b := x.bodies[it.text]
		if it.hasBody {
			if b.segment != 0 { // it was written again
				x.need(b.segment, -int64(b.length))
			}
			b.place, b.length = it.end(), it.body
			x.need(it.segment, int64(it.body))
		}
		if it.kind != orphan {
			b.lines++ // before the last line that names it may go
		}
		x.bodies[it.text] = b
	}
	switch it.kind {
	case orphan:
		x.removeUnnamed(it.text) // the last line that named it may have gone since
		return
	case forget:
		x.remove(it.key)
		return
	}
	old, known := x.lines[it.key]
	if known {
		x.uncount(old)
	}
	x.lines[it.key] = line{it.place, it.line, it.sum, it.kind, it.text}
	x.need(it.segment, int64(it.line))
	switch it.kind {
	case originRecord:
		x.origins++
	case answer:
		x.count++
		if known { // it was moved
			break
		}
		s := superseded{it.at, it.file, it.key}
		if x.opening { // they are not in order yet
			x.oldest = append(x.oldest, s)
			break
		}
		after := sort.Search(len(x.oldest), func(i int) bool { return x.oldest[i].at > s.at }) // most often all are before it
		x.oldest = slices.Insert(x.oldest, after, s)
		x.list(s)
	}
}

// list adds a superseded answer to those of its file. If there are too many of its kind, the oldest goes.
func (x *Reader) list(s superseded) {
	if x.gone(s.key) {
		return
	}
	all := append(x.answers[s.file], s.key)
	n, first, withBody := 0, 0, x.lines[s.key].text != 0
	for i, key := range slices.Backward(all) {
		if (x.lines[key].text != 0) == withBody {
			n, first = n+1, i
		}
	}
	if n > maxAnswers {
		x.remove(all[first])
		all = slices.Delete(all, first, first+1)
	}
	x.answers[s.file] = all
	if len(x.oldest) > 2*x.count+maxAnswers {
		x.oldest = slices.DeleteFunc(x.oldest, func(s superseded) bool { return x.gone(s.key) })
	}
}

// gone reports whether a key has no line.
func (x *Reader) gone(key id) bool { return x.lines[key].segment == 0 }

// remove removes the line of a key, if there is one.
func (x *Reader) remove(key id) {
	l, ok := x.lines[key]
	if !ok {
		return
	}
	delete(x.lines, key)
	x.uncount(l)
}

// uncount takes a line that goes out of the counts.
func (x *Reader) uncount(l line) {
	x.need(l.segment, -int64(l.length))
	switch l.kind {
	case originRecord:
		x.origins--
	case answer:
		x.count--
	}
	if l.text != 0 {
		b := x.bodies[l.text]
		b.lines--
		x.bodies[l.text] = b
		x.removeUnnamed(l.text)
	}
}

// removeUnnamed removes a body that no line names.
func (x *Reader) removeUnnamed(text id) {
	if x.bodies[text].lines == 0 && !x.opening {
		x.lose(text)
		delete(x.bodies, text)
	}
}

// lose forgets where a body is.
func (x *Reader) lose(text id) {
	if b := x.bodies[text]; b.segment != 0 {
		x.need(b.segment, -int64(b.length))
		x.bodies[text] = body{lines: b.lines}
	}
}

// removeAnswers removes up to n superseded answers, the oldest ones, and only those that were superseded until a
// time in Unix nanoseconds. It reports whether it removed any.
func (x *Reader) removeAnswers(n int, until int64) bool {
	before := x.count
	for len(x.oldest) > 0 && before-x.count < n && x.oldest[0].at <= until {
		s := x.oldest[0]
		x.oldest = x.oldest[1:]
		x.remove(s.key)
		if x.answers[s.file] = slices.DeleteFunc(x.answers[s.file], x.gone); len(x.answers[s.file]) == 0 {
			delete(x.answers, s.file)
		}
	}
	return x.count < before
}

// bytes is the size of all files.
func (x *Reader) bytes() (n int64) {
	for _, s := range x.segments {
		n += s.bytes()
	}
	return n
}
