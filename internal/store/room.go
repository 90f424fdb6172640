package store

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits bounds what a Disk keeps.
type Limits struct {
	Keep time.Duration `yaml:"keep" restart:"yes"` // of superseded snapshots
	// Bytes bounds everything on disk, but for what is saved until a walk through the folders has found what to remove.
	// First the oldest superseded snapshots are dropped, then the origins that were fetched longest ago.
	Bytes int64 `yaml:"disk_bytes" restart:"yes"`
}

// DefaultLimits returns the limits that suit most gates.
func DefaultLimits() Limits { return Limits{Keep: 365 * 24 * time.Hour, Bytes: 10 << 30} }

// A Usage is how much a store holds.
type Usage struct {
	Origins int64
	Bytes   int64
	Bound   int64 // on Bytes
}

// Usage returns what is on disk: what the last walk has found, and what this process has saved since.
func (d *Disk) Usage() Usage { return Usage{d.origins.Load(), d.bytes.Load(), d.limits.Bytes} }

// count counts so many files of a size, and asks for a walk if the store has too much.
func (d *Disk) count(path string, files, size int64) {
	d.origins.Add(files * origins(filepath.Base(path)))
	if d.bytes.Add(files*blocks(size)) > d.limits.Bytes {
		select {
		case d.crowded <- struct{}{}:
		default:
		}
	}
}

// origins returns 1 for the name of the set of a robots.txt, otherwise 0.
func origins(name string) int64 {
	if parts(name) == setParts && !strings.Contains(name, "_tdmrep_") {
		return 1
	}
	return 0
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
	parts     int   // of its name
	at, bytes int64 // when it was superseded, or saved, in Unix nanoseconds
}

// compare returns a negative number if a has to go before b.
func (a kept) compare(b kept) int {
	return cmp.Or(-cmp.Compare(a.parts, b.parts), cmp.Compare(a.at, b.at))
}

// walk removes superseded answers that were kept for long enough, and what the bound on bytes has no room for.
func (d *Disk) walk(ctx context.Context) {
	var all []kept
	excess := -d.limits.Bytes
	expired := time.Now().Add(-d.limits.Keep).UnixNano()
	d.scan(ctx, func(k kept) (stays bool) {
		if k.parts == pastParts && k.at <= expired {
			return false
		}
		all, excess = append(all, k), excess+k.bytes
		return true
	})
	if excess <= 0 || len(all) == 0 {
		return
	}
	excess += d.limits.Bytes / 8 // or else each save would need a walk
	slices.SortFunc(all, kept.compare)
	var last kept
	for _, k := range all {
		if excess <= 0 {
			break
		}
		excess, last = excess-k.bytes, k
	}
	d.scan(ctx, func(k kept) (stays bool) { return k.compare(last) > 0 })
}

// scan calls stays for the files of snapshots, and removes those for which it is false, and what a killed process has
// left of a write. It counts the others.
func (d *Disk) scan(ctx context.Context, stays func(kept) bool) {
	u := Usage{Origins: -d.origins.Load(), Bytes: -d.bytes.Load()}
	for folder := range 256 {
		if ctx.Err() != nil {
			return
		}
		dir := filepath.Join(d.dir, fmt.Sprintf("%02x", folder))
		unlock, locked := d.lock(ctx, dir) // another process may just replace a set
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			d.log.Warn("a folder of the snapshots can't be read whole", "error", err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // it is gone
			}
			k := kept{parts(e.Name()), info.ModTime().UnixNano(), blocks(info.Size())}
			goes := false
			switch k.parts {
			case setParts:
				goes = !stays(k) && locked == nil
			case pastParts:
				goes = !stays(k)
			default:
				if strings.HasPrefix(e.Name(), ".") && time.Since(info.ModTime()) > time.Hour {
					os.Remove(filepath.Join(dir, e.Name()))
				}
				continue
			}
			if goes && os.Remove(filepath.Join(dir, e.Name())) == nil {
				continue
			}
			u.Origins += origins(e.Name())
			u.Bytes += k.bytes
		}
		if locked == nil {
			unlock()
		}
	}
	d.origins.Add(u.Origins) // what was saved meanwhile may be counted twice until the next walk
	d.bytes.Add(u.Bytes)
}
