package store

import "os"

// A Usage is how much a store holds.
type Usage struct {
	Origins int64
	Bytes   int64
	Bound   int64 // on Bytes
}

// Usage returns what is on disk. It does not wait for a change that is being
// written, and leaves that out.
func (d *Disk) Usage() Usage {
	used := d.published.Load()
	u := Usage{Origins: used.origins, Bytes: used.bodies, Bound: d.limits.Bytes}
	if index, err := os.Stat(d.db.Path()); err == nil {
		u.Bytes += index.Size()
	}
	return u
}
