package store

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Limits bounds what a Disk keeps.
type Limits struct {
	Keep time.Duration `yaml:"keep" restart:"yes"` // of superseded snapshots
	// Bytes bounds everything on disk, give or take a batch of
	// [Disk.Save]. First the oldest superseded snapshots are dropped, then the origins
	// that were fetched longest ago, roughly.
	Bytes int64 `yaml:"disk_bytes" size:"yes" restart:"yes"`
}

// DefaultLimits returns the limits that suit most gates.
func DefaultLimits() Limits { return Limits{Keep: 365 * 24 * time.Hour, Bytes: 10 << 30} }

// maxEntries bounds the sets and superseded answers, and so the index in memory: to some 450 MiB.
const maxEntries = 3 << 20

// segment is the size at which a segment is full.
func (l Limits) segment() int64 { return min(max(l.Bytes/32, 64<<10), 128<<20) }

// batch is the size at which a batch is written.
func (l Limits) batch() int { return int(min(l.segment()/4, 4<<20)) }

// full reports whether the next batch needs a new segment.
func (d *Disk) full() bool {
	n := len(d.segments)
	return n == 0 || d.segments[n-1].size >= d.limits.segment()
}

// last returns the segment to append to, a new one if the last one is full.
func (d *Disk) last() (*segment, error) {
	n := len(d.segments)
	if !d.full() {
		return d.segments[n-1], nil
	}
	number := uint32(1)
	if n > 0 {
		number = d.segments[n-1].number + 1
	}
	s, err := openSegment(d.dir, number, os.O_RDWR|os.O_CREATE|os.O_TRUNC) // a failure may have left an empty file
	if err != nil {
		return nil, err
	}
	if err := syncDir(d.dir); err != nil {
		return nil, errors.Join(err, s.close())
	}
	d.mu.Lock()
	d.segments = append(d.segments, s)
	d.mu.Unlock()
	return s, nil
}

// crowded reports whether the store is so large that another segment would not fit within the limits.
func (d *Disk) crowded() bool {
	return d.bytes() > d.limits.Bytes-d.limits.segment() || len(d.lines) > d.entries
}

// makeRoom removes segments of which little is needed. When the store is crowded, it also removes the oldest superseded
// answers, and when there are none left, the oldest sets.
func (d *Disk) makeRoom() error {
	for until := d.expired(); ; {
		d.removeAnswers(until)
		if !d.crowded() && d.gone < len(d.lines)/8 {
			return nil // it is not worth the time to look at all lines
		}
		needed, moved := d.needed(), false
		for _, s := range slices.Clone(d.segments[:max(len(d.segments)-1, 0)]) {
			if n := needed[s.number]; n < s.size/2 || d.crowded() && n < s.size/8*7 {
				if err := d.move(s); err != nil {
					return err
				}
				moved = true
			}
		}
		d.gone = 0
		switch {
		case !d.crowded() || len(d.segments) < 2 && !moved:
			return nil
		case moved:
		case len(d.answers) > 0:
			until = d.oldest(16 + d.count/8)
		default:
			if removed, err := d.removeOldestSets(); err != nil || !removed {
				return err
			}
		}
	}
}

// needed returns how many bytes of each segment's data are needed, by its number. It forgets the bodies that no line names.
func (d *Disk) needed() map[uint32]int64 {
	d.mu.RLock() // others read meanwhile
	needed, named := map[uint32]int64{}, make(map[id]bool, len(d.bodies))
	for _, l := range d.lines {
		needed[l.segment] += int64(l.length)
		named[l.text] = true
	}
	var unnamed []id
	for text, b := range d.bodies {
		if named[text] {
			needed[b.segment] += int64(b.length)
		} else {
			unnamed = append(unnamed, text)
		}
	}
	d.mu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range unnamed {
		delete(d.bodies, text)
	}
	return needed
}

// oldest returns when the last of the n answers was superseded that were superseded first, in Unix nanoseconds.
func (d *Disk) oldest(n int) int64 {
	var all []int64
	for _, some := range d.answers {
		for _, s := range some {
			all = append(all, s.at)
		}
	}
	slices.Sort(all)
	return all[min(n, len(all))-1]
}

// removeAnswers removes the answers that were superseded until a time in Unix nanoseconds, and those that are lost.
func (d *Disk) removeAnswers(until int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for file, all := range d.answers {
		all = slices.DeleteFunc(all, func(s superseded) bool {
			if s.at <= until {
				d.remove(s.key)
			}
			return d.lines[s.key].segment == 0
		})
		if d.answers[file] = all; len(all) == 0 {
			delete(d.answers, file)
		}
	}
}

// removeOldestSets removes the sets of the oldest segment that has any, so that less is needed of it and of those
// with their bodies. It reports whether there were any.
func (d *Disk) removeOldestSets() (removed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.segments {
		err := s.scan(func(it item) bool {
			if l := d.lines[it.key]; l.place == it.place && l.kind != answer {
				d.remove(it.key)
				removed = true
			}
			return true
		})
		if err != nil || removed {
			return removed, err
		}
	}
	return false, nil
}

// move appends what is needed of a segment to the last one, and removes it.
func (d *Disk) move(s *segment) error {
	b := batch{texts: map[id]bool{}}
	var failed error
	err := s.scan(func(it item) bool {
		if d.moveItem(&b, s, it); len(b.data) >= d.limits.batch() {
			failed = d.append(&b)
		}
		return failed == nil
	})
	if err = cmp.Or(err, failed); err == nil {
		err = d.append(&b)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.segments = slices.DeleteFunc(d.segments, func(other *segment) bool { return other == s })
	err = s.close()
	if s.damaged > 0 { // a person may still find something; only the last one stays
		aside := filepath.Join(d.dir, "damaged")
		err = errors.Join(err, os.Rename(s.data.Name(), aside+dataSuffix), os.Rename(s.index.Name(), aside+indexSuffix))
	} else {
		err = errors.Join(err, os.Remove(s.data.Name()), os.Remove(s.index.Name())) // open removes an index without data
	}
	if err != nil { // all that is needed of it is elsewhere
		d.log.Warn("a file of snapshots that is no longer needed can't be removed; the next start tries it again", "error", err)
	}
	return nil
}

// moveItem adds what is needed of an item of a segment to a batch.
func (d *Disk) moveItem(b *batch, s *segment, it item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, known := d.lines[it.key]
	if it.kind == forget { // or else an older segment's set would be back after a restart
		if !known && s != d.segments[0] {
			it.offset = uint32(len(b.data))
			b.items = append(b.items, it)
		}
		return
	}
	needed := l.place == it.place
	it.hasBody = it.hasBody && d.bodies[it.text].place == it.end()
	if !needed {
		it.kind, it.offset, it.line = orphan, it.offset+it.line, 0
	}
	length := it.line
	if it.hasBody {
		length += it.body + 1 // with the newline
	} else if it.body = 0; !needed {
		return
	}
	data, err := s.read(it.offset, length)
	if err != nil { // it is lost, and must not prevent the rest from being moved
		d.log.Warn("a part of the snapshots can't be read; it will be fetched again", "folder", d.dir, "error", err)
		s.damaged++
		if needed {
			d.remove(it.key)
		}
		if it.hasBody {
			delete(d.bodies, it.text)
		}
		return
	}
	it.offset = uint32(len(b.data))
	b.data = append(b.data, data...)
	b.items = append(b.items, it)
}

// syncDir makes the names of files in a folder safe against a power cut.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // it can't
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
