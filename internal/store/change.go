package store

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
)

// usage is what a store holds, in bytes.
type usage struct {
	rows    int64 // of the index
	bodies  int64 // on disk
	origins int64 // their number
}

// rowCost is what a row adds to its page beside its key and value.
const rowCost = 16

// count adds a row of a bucket, and checks it if its like have checksums.
func (u *usage) count(bucket, key, value []byte) (err error) {
	u.rows += int64(len(key) + len(value) + rowCost)
	switch string(bucket) {
	case string(recordsBucket):
		if countsAsOrigin(key) {
			u.origins++
		}
		_, err = unseal(key, value)
	case string(historyBucket):
		_, err = unseal(key, value)
	case string(bodiesBucket):
		var n naming
		n, err = openNaming(key, value)
		u.bodies += n.cost()
	}
	return err
}

// countsAsOrigin reports whether the record under a key counts as one origin. Copies that bind one
// product token belong to another record. An origin counts twice if configured crawlers and
// other clients ask for it.
func countsAsOrigin(key []byte) bool { return policy.ParseKey(string(key)).Token == "" }

// A change is a write transaction. It keeps the buckets that follow from records
// and history in step with them.
type change struct {
	tx                                    *bbolt.Tx
	records, history, seen, ended, bodies *bbolt.Bucket

	used    usage
	unnamed map[string]struct{} // digests of bodies that no row names any more
}

func newChange(tx *bbolt.Tx, used usage) *change {
	return &change{
		tx: tx, used: used, unnamed: map[string]struct{}{},
		records: tx.Bucket(recordsBucket), history: tx.Bucket(historyBucket),
		seen: tx.Bucket(seenBucket), ended: tx.Bucket(endedBucket), bodies: tx.Bucket(bodiesBucket),
	}
}

func (c *change) put(b *bbolt.Bucket, key, value []byte) error {
	c.forget(b, key)
	c.used.rows += int64(len(key) + len(value) + rowCost)
	if b == c.records && countsAsOrigin(key) {
		c.used.origins++
	}
	return b.Put(key, value)
}

func (c *change) delete(b *bbolt.Bucket, key []byte) error {
	c.forget(b, key)
	return b.Delete(key)
}

// forget takes a row out of the sum, if there is one.
func (c *change) forget(b *bbolt.Bucket, key []byte) {
	if value := b.Get(key); value != nil {
		c.used.rows -= int64(len(key) + len(value) + rowCost)
		if b == c.records && countsAsOrigin(key) {
			c.used.origins--
		}
	}
}

// nothing is the value of rows that are all key; bbolt has no telling of an
// empty one from none.
var nothing = []byte{0}

// save makes a record the one under its key; an empty one removes what is there. What the one
// before it had, and it has not, becomes history.
func (c *change) save(origin string, rec policy.Record) error {
	key := []byte(origin)
	old := c.row(key)
	next := row{Record: rec}
	next.Body = nil // it is a file
	if next.Last == next.Good {
		next.Last = nil
	}
	past := next.follow(old)
	if digest := next.digest(); digest != old.digest() {
		if err := c.name(digest, int64(len(rec.Body))); err != nil {
			return err
		}
	}
	for _, a := range past {
		if err := c.supersede(origin, a); err != nil {
			return err
		}
	}
	if rec.Empty() {
		return c.dropRecord(key)
	}
	if digest := old.digest(); digest != next.digest() {
		if err := c.unname(digest); err != nil {
			return err
		}
	}
	if err := c.delete(c.seen, stamped(old.newest(), key)); err != nil {
		return err
	}
	if err := c.put(c.seen, stamped(next.newest(), key), nothing); err != nil {
		return err
	}
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return c.put(c.records, key, seal(key, data))
}

// row returns the row of an origin, an empty one if there is none or it can't be
// read: it must not stand in the way of what takes its place, though its body
// stays counted.
func (c *change) row(key []byte) row {
	if r, err := openRow(key, c.records.Get(key)); err == nil {
		return r
	}
	return row{}
}

// supersede makes an answer history, the oldest of too many goes.
func (c *change) supersede(origin string, a Answer) error {
	key := historyKey(origin, a)
	for c.history.Get(key) != nil { // of the same nanosecond
		at := key[len(key)-9 : len(key)-1]
		binary.BigEndian.PutUint64(at, binary.BigEndian.Uint64(at)+1)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := c.put(c.history, key, seal(key, data)); err != nil {
		return err
	}
	if err := c.put(c.ended, stamped(a.To, key), nothing); err != nil {
		return err
	}
	if err := c.name(a.Snapshot.SHA256, 0); err != nil {
		return err
	}
	if origin == "" {
		return nil // bodies of nobody are bounded by disk_bytes alone
	}
	if oldest := c.tooMany(key); oldest != nil {
		return c.dropAnswer(oldest)
	}
	return nil
}

// tooMany returns the oldest answer of an origin's kind of answers if there are
// more than an origin may have.
func (c *change) tooMany(key []byte) (oldest []byte) {
	n := 0
	for k := range withPrefix(c.history, key[:len(key)-9]) {
		if k[len(k)-1] != key[len(key)-1] {
			continue
		}
		if n++; n == 1 {
			oldest = k
		}
	}
	if n <= maxAnswers {
		return nil
	}
	return oldest
}

// dropAnswer removes an answer from history.
func (c *change) dropAnswer(key []byte) error {
	key = append([]byte(nil), key...) // bbolt's own bytes may move
	if a, err := openAnswer(key, c.history.Get(key)); err == nil {
		if err := c.unname(a.Snapshot.SHA256); err != nil {
			return err
		}
		if err := c.delete(c.ended, stamped(a.To, key)); err != nil {
			return err
		}
	}
	return c.delete(c.history, key)
}

// dropRecord removes all that is known of an origin but its history.
func (c *change) dropRecord(key []byte) error {
	r := c.row(key)
	if err := c.unname(r.digest()); err != nil {
		return err
	}
	if err := c.delete(c.seen, stamped(r.newest(), key)); err != nil {
		return err
	}
	return c.delete(c.records, key)
}

// naming is how many rows name a body, and how long it is.
type naming struct {
	rows uint32
	size int64
}

const block = 4096

// cost is what a body takes on disk: whole blocks, and a place in its folder.
func (n naming) cost() int64 {
	const place = 100
	return max(n.size+block-1, block)/block*block + place
}

func openNaming(key, sealed []byte) (n naming, err error) {
	data, err := unseal(key, sealed)
	if err != nil || len(data) != 12 {
		return n, errors.Join(err, errors.New("a count of bodies can't be read"))
	}
	return naming{binary.BigEndian.Uint32(data), int64(binary.BigEndian.Uint64(data[4:]))}, nil
}

func (n naming) sealed(key []byte) []byte {
	data := binary.BigEndian.AppendUint32(nil, n.rows)
	return seal(key, binary.BigEndian.AppendUint64(data, uint64(n.size)))
}

// name counts one more row that names a body. The size is heeded the first time.
func (c *change) name(digest string, size int64) error {
	if digest == "" {
		return nil
	}
	key, n, err := c.naming(digest)
	if err != nil {
		return err
	}
	if n.rows == 0 {
		n.size = size
		c.used.bodies += n.cost()
		delete(c.unnamed, digest)
	}
	n.rows++
	return c.put(c.bodies, key, n.sealed(key))
}

// unname counts one row less.
func (c *change) unname(digest string) error {
	if digest == "" {
		return nil
	}
	key, n, err := c.naming(digest)
	if err != nil || n.rows == 0 {
		return err
	}
	if n.rows--; n.rows > 0 {
		return c.put(c.bodies, key, n.sealed(key))
	}
	c.used.bodies -= n.cost()
	c.unnamed[digest] = struct{}{}
	return c.delete(c.bodies, key)
}

func (c *change) naming(digest string) (key []byte, n naming, err error) {
	if key, err = hex.DecodeString(digest); err != nil {
		return nil, n, fmt.Errorf("%q is not a SHA-256", digest)
	}
	n, _ = openNaming(key, c.bodies.Get(key)) // what can't be read is begun anew
	return key, n, nil
}

// stamped returns key behind a time that sorts before later ones.
func stamped(t time.Time, key []byte) []byte {
	return append(appendTime(make([]byte, 0, 8+len(key)), t), key...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.Before(time.Unix(0, 0)) {
		t = time.Unix(0, 0)
	}
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

// parted undoes stamped.
func parted(b []byte) (t time.Time, key []byte) {
	if len(b) < 8 {
		return time.Time{}, nil
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))), b[8:]
}
