package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"robotsgate/internal/wholefile"
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

// maxEntries bounds the sets and superseded answers, and so the index in memory: to some 500 MiB.
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
	wholefile.SyncDir(d.dir)
	d.mu.Lock()
	d.segments = append(d.segments, s)
	d.mu.Unlock()
	return s, nil
}

// bytes is the size of all files.
func (d *Disk) bytes() (n int64) {
	for _, s := range d.segments {
		n += s.bytes()
	}
	return n
}

// crowded reports whether the store is so large that another segment would not fit within the limits.
func (d *Disk) crowded() bool {
	return d.bytes() > d.limits.Bytes-d.limits.segment() || len(d.records) > d.entries
}

// makeRoom removes segments of which little is needed. As long as the store is crowded, it also removes the oldest
// superseded answers, and when there are none left, the oldest sets.
func (d *Disk) makeRoom() error {
	for until := d.expired(); ; {
		d.removeAnswers(until)
		for _, s := range slices.Clone(d.segments[:max(len(d.segments)-1, 0)]) {
			if s.needed <= s.size/2 || d.crowded() && s.needed < s.size/8*7 {
				if err := d.move(s); err != nil {
					return err
				}
			}
		}
		switch {
		case !d.crowded() || len(d.segments) < 2:
			return nil
		case len(d.answers) > 0:
			until = d.oldest()
		default:
			d.mu.Lock()
			d.removeRecords(d.segments[0])
			d.mu.Unlock()
		}
	}
}

// oldest returns when the first eighth of the answers had been superseded, in Unix nanoseconds.
func (d *Disk) oldest() int64 {
	var all []int64
	for _, some := range d.answers {
		for _, s := range some {
			all = append(all, s.at)
		}
	}
	slices.Sort(all)
	return all[len(all)/8]
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
			return d.records[s.key].segment == 0
		})
		if d.answers[file] = all; len(all) == 0 {
			delete(d.answers, file)
		}
	}
}

// removeRecords removes the records of a segment.
func (d *Disk) removeRecords(s *segment) {
	for key, r := range d.records {
		if r.segment == s.number {
			d.remove(key)
		}
	}
}

// move appends what is needed of a segment to the last one, and removes it.
func (d *Disk) move(s *segment) error {
	var b batch
	var failed error
	_ = s.scan(func(it item) bool { // what can't be read is lost, and must not prevent the rest from being moved
		r, known := d.records[it.key]
		// That a key was forgotten stays, or else the set of an older segment would be back after a restart.
		if forgotten := it.kind == forget && !known && s != d.segments[0]; !forgotten && r.place != it.place {
			return true
		}
		data, err := s.read(it.record)
		if err != nil {
			return true
		}
		it.offset = uint32(len(b.data))
		b.data, b.items = append(b.data, data...), append(b.items, it)
		if len(b.data) >= d.limits.batch() {
			failed = d.append(&b)
		}
		return failed == nil
	})
	if failed == nil {
		failed = d.append(&b)
	}
	if failed != nil {
		return failed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.needed > 0 {
		d.log.Warn("a part of the snapshots can't be read; it will be fetched again", "file", s.data.Name(), "bytes", s.needed)
		s.damaged++
		d.removeRecords(s)
	}
	d.segments = slices.DeleteFunc(d.segments, func(other *segment) bool { return other == s })
	err := s.close()
	if s.damaged > 0 { // a person may still find something; only the last one stays
		aside := filepath.Join(d.dir, damaged)
		err = errors.Join(err, os.Rename(s.data.Name(), aside+dataSuffix), os.Rename(s.index.Name(), aside+indexSuffix))
	} else {
		err = errors.Join(err, os.Remove(s.data.Name()), os.Remove(s.index.Name())) // a kill between them leaves an index file, which nothing reads
	}
	if err != nil { // all that is needed of it is elsewhere
		d.log.Warn("a file of snapshots that is no longer needed can't be removed; the next start tries it again", "error", err)
	}
	return nil
}
