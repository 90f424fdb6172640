package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// bodyRefs is the number of rows that name a body, and the length of the body.
type bodyRefs struct {
	count uint32
	size  int64
}

const block = 4096

// cost is the space that a body takes on disk: whole blocks, and a place in its folder.
func (n bodyRefs) cost() int64 {
	const place = 100
	return max(n.size+block-1, block)/block*block + place
}

func openRefs(key, value []byte) (n bodyRefs, err error) {
	data, err := verify(key, value)
	if err != nil || len(data) != 12 {
		return n, errors.Join(err, errors.New("a count of bodies can't be read"))
	}
	return bodyRefs{binary.BigEndian.Uint32(data), int64(binary.BigEndian.Uint64(data[4:]))}, nil
}

func (c *change) putRefs(key []byte, n bodyRefs) {
	data := binary.BigEndian.AppendUint32(nil, n.count)
	c.put(c.bodies, key, withChecksum(key, binary.BigEndian.AppendUint64(data, uint64(n.size))))
}

// addRef counts one more row that names a body; empty: none. The size is used the first time.
func (c *change) addRef(digest string, size int64) {
	if digest == "" {
		return
	}
	key, n := c.refs(digest)
	if n.count == 0 {
		n.size = size
		c.used.bodies += n.cost()
		delete(c.unreferenced, digest)
	}
	n.count++
	c.putRefs(key, n)
}

// dropRef counts one row less.
func (c *change) dropRef(digest string) {
	if digest == "" {
		return
	}
	key, n := c.refs(digest)
	switch n.count {
	case 0:
	case 1:
		c.used.bodies -= n.cost()
		c.unreferenced[digest] = struct{}{}
		c.delete(c.bodies, key)
	default:
		n.count--
		c.putRefs(key, n)
	}
}

// refs returns the references to a body. A row that can't be read counts as none.
func (c *change) refs(digest string) (key []byte, n bodyRefs) {
	key, err := hex.DecodeString(digest)
	if err != nil {
		c.fail(fmt.Errorf("%q is not a SHA-256", digest))
	}
	n, _ = openRefs(key, c.bodies.Get(key))
	return key, n
}
