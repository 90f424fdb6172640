package store

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"
)

// Limits bounds what a Disk keeps.
type Limits struct {
	Keep time.Duration `yaml:"keep" restart:"yes"` // of superseded snapshots
	// Bytes bounds everything on disk, but for what is saved until a walk through the folders has found what to remove.
	// First the oldest superseded snapshots are dropped, then the origins that were fetched longest ago.
	Bytes int64 `yaml:"disk_bytes" size:"yes" restart:"yes"`
}

// DefaultLimits returns the limits that suit most gates.
func DefaultLimits() Limits { return Limits{Keep: 365 * 24 * time.Hour, Bytes: 10 << 30} }

// A Usage is how much a store holds. What other processes save is counted at the next walk.
type Usage struct {
	Origins int64
	Bytes   int64
	Bound   int64 // on Bytes
}

// Usage returns what is on disk.
func (d *Disk) Usage() Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := Usage{Bound: d.limits.Bytes}
	for _, f := range d.usage {
		u.Origins += f.Origins
		u.Bytes += f.Bytes
	}
	return u
}

// count adds to what is in a folder, and asks for a walk if the store has too much. The caller holds saving.
func (d *Disk) count(folder int, origins, bytes int64) {
	d.mu.Lock()
	d.usage[folder].Origins += origins
	d.usage[folder].Bytes += bytes
	d.mu.Unlock()
	if d.Usage().Bytes > d.limits.Bytes {
		select {
		case d.crowded <- struct{}{}:
		default:
		}
	}
}

// blocks returns what a file of a size takes on disk.
func blocks(size int64) int64 {
	const block = 4096
	return (size + block - 1) / block * block
}

// walks walks at the start, every hour, and when there is too much.
func (d *Disk) walks(ctx context.Context) {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for ctx.Err() == nil {
		d.walk(ctx)
		select {
		case <-hourly.C:
		case <-d.crowded:
		case <-ctx.Done():
		}
	}
}

// A kept file is one that a walk has seen.
type kept struct {
	name
	at, bytes int64 // when it was superseded, or saved, in Unix nanoseconds
}

// walk removes superseded answers that were kept for long enough, and what the bound on bytes has no room for.
func (d *Disk) walk(ctx context.Context) {
	var past, current []age
	expired := time.Now().Add(-d.limits.Keep).UnixNano()
	for folder := range folders {
		if ctx.Err() != nil {
			return
		}
		d.saving[folder].Lock()
		d.scan(folder, func(k kept) (stays bool) {
			switch {
			case k.began == "":
				current = append(current, age{k.at, k.bytes})
			case k.at <= expired:
				return false
			default:
				past = append(past, age{k.at, k.bytes})
			}
			return true
		})
		d.saving[folder].Unlock()
	}
	excess := d.Usage().Bytes - d.limits.Bytes
	if excess <= 0 {
		return
	}
	lastPast, excess := oldest(past, excess+d.limits.Bytes/8) // or else each save would need a walk
	lastCurrent, _ := oldest(current, excess)
	for folder := range folders {
		if unlock, err := d.lock(ctx, folder); err == nil { // another process may just replace a set
			d.scan(folder, func(k kept) (stays bool) {
				if k.began == "" {
					return k.at > lastCurrent
				}
				return k.at > lastPast
			})
			unlock()
		}
	}
}

// scan calls stays for the files of snapshots in a folder, and removes those for which it is false, and what a killed
// process has left of a write. It counts the others. The caller holds saving.
func (d *Disk) scan(folder int, stays func(kept) bool) {
	entries, err := os.ReadDir(d.path(folder, ""))
	if err != nil && !os.IsNotExist(err) {
		d.log.Warn("a folder of the snapshots can't be read whole", "error", err)
	}
	var u Usage
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it is gone
		}
		path := d.path(folder, e.Name())
		n, ok := parse(folder, e.Name())
		k := kept{n, info.ModTime().UnixNano(), blocks(info.Size())}
		switch {
		case !ok:
			if strings.HasPrefix(e.Name(), ".") && time.Since(info.ModTime()) > time.Hour {
				os.Remove(path)
			}
		case !stays(k) && os.Remove(path) == nil:
		default:
			if u.Bytes += k.bytes; n.began == "" && !n.tdmrep {
				u.Origins++
			}
		}
	}
	d.mu.Lock()
	d.usage[folder] = u
	d.mu.Unlock()
}

// An age is that of a file with a size.
type age struct{ at, bytes int64 }

// oldest returns until when files have to go to save so many bytes, and how many bytes the files lack.
func oldest(files []age, bytes int64) (until, missing int64) {
	slices.SortFunc(files, func(a, b age) int { return cmp.Compare(a.at, b.at) })
	for _, k := range files {
		if bytes <= 0 {
			break
		}
		until, bytes = k.at, bytes-k.bytes
	}
	return until, max(bytes, 0)
}
