package store

import (
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
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

// maxEntries bounds the records and superseded answers, and so the index in memory: to some 450 MiB.
const maxEntries = 3 << 20

// segment is the size at which a segment is full.
func (l Limits) segment() int64 { return min(max(l.Bytes/32, 64<<10), 128<<20) }

// batch is the size at which a batch is written.
func (l Limits) batch() int { return int(min(l.segment()/4, 4<<20)) }

// last returns the segment to append to, a new one if the last one is full.
func (d *Disk) last() (*segment, error) {
	n := len(d.segments)
	if n > 0 && d.segments[n-1].size < d.limits.segment() {
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
	return d.bytes() > d.limits.Bytes-d.limits.segment() || len(d.lines) > maxEntries
}

// makeRoom removes segments of which little is needed. When the store is crowded, it also removes the oldest superseded
// answers, and when there are none left, the oldest records.
func (d *Disk) makeRoom() error {
	for {
		s, share := d.leastNeeded()
		crowded := d.crowded()
		switch {
		case share < 1./2 || crowded && share < 7./8:
			if err := d.move(s, true); err != nil {
				return err
			}
		case !crowded || s == nil:
			return nil
		default:
			const some = 16
			d.mu.Lock()
			removed := d.removeAnswers(some, math.MaxInt64)
			d.mu.Unlock()
			if removed {
				continue
			}
			if err := d.move(d.segments[0], false); err != nil {
				return err
			}
		}
	}
}

// leastNeeded returns the segment with the smallest needed share, other than the last segment.
func (d *Disk) leastNeeded() (least *segment, share float64) {
	d.mu.RLock() // Load may lose a body
	defer d.mu.RUnlock()
	share = math.Inf(1)
	for _, s := range d.segments[:max(len(d.segments)-1, 0)] {
		if of := float64(s.needed) / float64(max(s.size, 1)); of < share {
			least, share = s, of
		}
	}
	return least, share
}

// move appends what is needed of a segment to the last one, with or without its records, and removes it.
func (d *Disk) move(s *segment, records bool) error {
	b := batch{texts: map[id]bool{}}
	var failed error
	err := s.scan(func(it item) bool {
		if d.moveItem(&b, s, it, records); len(b.data) >= d.limits.batch() {
			failed = d.write(&b)
		}
		return failed == nil
	})
	if err = cmp.Or(err, failed); err == nil {
		err = d.write(&b)
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
		return err
	}
	return errors.Join(err, os.Remove(s.index.Name()), os.Remove(s.data.Name()))
}

// moveItem adds what is needed of an item of a segment to a batch.
func (d *Disk) moveItem(b *batch, s *segment, it item, records bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, known := d.lines[it.key]
	if it.kind == forget { // or else an older segment's record would be back after a restart
		if !known && s != d.segments[0] {
			it.offset = uint32(len(b.data))
			b.items = append(b.items, it)
		}
		return
	}
	needed := l.place == it.place
	if needed && it.kind != answer && !records {
		d.remove(it.key)
		needed = false
	}
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
		if needed {
			d.remove(it.key)
		}
		if it.hasBody {
			d.lose(it.text)
		}
		return
	}
	it.offset = uint32(len(b.data))
	b.data = append(b.data, data...)
	b.items = append(b.items, it)
}

// syncDir makes the names of files in a folder safe against a power cut.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
