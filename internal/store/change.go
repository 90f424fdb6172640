package store

import (
	"bytes"
	"encoding/json"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
)

// usage is what a store holds, in bytes.
type usage struct {
	rows    int64 // of the index
	bodies  int64 // on disk
	origins int64 // their number
}

// rowCost is the space of a row in its page beside its key and value.
const rowCost = 16

// count adds a row of a bucket, and verifies its checksum if it has one.
func (u *usage) count(bucket, key, value []byte) (err error) {
	u.rows += int64(len(key) + len(value) + rowCost)
	switch string(bucket) {
	case string(recordsBucket):
		if countsAsOrigin(key) {
			u.origins++
		}
		_, err = verify(key, value)
	case string(historyBucket):
		_, err = verify(key, value)
	case string(bodiesBucket):
		var n bodyRefs
		n, err = openRefs(key, value)
		u.bodies += n.cost()
	}
	return err
}

// countsAsOrigin reports whether the record under a key counts as one origin. Copies that bind one
// product token belong to another record. An origin counts twice if configured crawlers and
// other clients ask for it.
func countsAsOrigin(key []byte) bool { return policy.ParseKey(string(key)).Token == "" }

// A change is a write transaction. It updates the buckets that are derived from records
// and history, and the usage, together with them.
type change struct {
	tx                                    *bbolt.Tx
	records, history, seen, ended, bodies *bbolt.Bucket

	used         usage
	unreferenced map[string]struct{} // digests of bodies that no row names any more
}

func newChange(tx *bbolt.Tx, used usage) *change {
	return &change{
		tx: tx, used: used, unreferenced: map[string]struct{}{},
		records: tx.Bucket(recordsBucket), history: tx.Bucket(historyBucket),
		seen: tx.Bucket(seenBucket), ended: tx.Bucket(endedBucket), bodies: tx.Bucket(bodiesBucket),
	}
}

func (c *change) put(b *bbolt.Bucket, key, value []byte) error {
	c.subtract(b, key)
	c.used.rows += int64(len(key) + len(value) + rowCost)
	if b == c.records && countsAsOrigin(key) {
		c.used.origins++
	}
	return b.Put(key, value)
}

func (c *change) delete(b *bbolt.Bucket, key []byte) error {
	c.subtract(b, key)
	return b.Delete(key)
}

// subtract takes a row out of the usage, if there is one.
func (c *change) subtract(b *bbolt.Bucket, key []byte) {
	if value := b.Get(key); value != nil {
		c.used.rows -= int64(len(key) + len(value) + rowCost)
		if b == c.records && countsAsOrigin(key) {
			c.used.origins--
		}
	}
}

// emptyValue is the value of rows that are all key: bbolt returns the same for an
// empty value and for none.
var emptyValue = []byte{0}

// save makes a record the one under its key. An empty one removes the record there. Answers of the
// record before that the new one lacks become history.
func (c *change) save(scope string, rec policy.Record) error {
	key := []byte(scope)
	old := c.row(key)
	next := row{Record: rec}
	next.Body = nil // it is a file
	if next.Last == next.Good {
		next.Last = nil
	}
	past := next.follow(old)
	if digest := next.digest(); digest != old.digest() {
		if err := c.addRef(digest, int64(len(rec.Body))); err != nil {
			return err
		}
	}
	for _, a := range past {
		if err := c.supersede(scope, a); err != nil {
			return err
		}
	}
	if rec.Empty() {
		return c.dropRecord(key)
	}
	if digest := old.digest(); digest != next.digest() {
		if err := c.dropRef(digest); err != nil {
			return err
		}
	}
	if err := c.delete(c.seen, timeKey(old.newest(), key)); err != nil {
		return err
	}
	if err := c.put(c.seen, timeKey(next.newest(), key), emptyValue); err != nil {
		return err
	}
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return c.put(c.records, key, withChecksum(key, data))
}

// row returns the row under a key. It is empty if there is none or if it can't be
// read: such a row must not prevent the next one, though its body stays counted.
func (c *change) row(key []byte) row {
	if r, err := openRow(key, c.records.Get(key)); err == nil {
		return r
	}
	return row{}
}

// supersede makes an answer history. If there are too many, the oldest is dropped.
func (c *change) supersede(scope string, a Answer) error {
	key := historyKey(scope, a)
	for c.history.Get(key) != nil { // another answer of the same nanosecond
		nextHistoryKey(key)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := c.put(c.history, key, withChecksum(key, data)); err != nil {
		return err
	}
	if err := c.put(c.ended, timeKey(a.To, key), emptyValue); err != nil {
		return err
	}
	if err := c.addRef(a.Snapshot.SHA256, 0); err != nil {
		return err
	}
	if scope == "" {
		return nil // orphans are bounded only by Limits.Bytes
	}
	if oldest := c.tooMany(key); oldest != nil {
		return c.dropAnswer(oldest)
	}
	return nil
}

// tooMany returns the oldest answer of the same scope and kind as the one under key, if there are
// more than maxAnswers.
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
	key = bytes.Clone(key) // bbolt's own bytes may move
	if a, err := openAnswer(key, c.history.Get(key)); err == nil {
		if err := c.dropRef(a.Snapshot.SHA256); err != nil {
			return err
		}
		if err := c.delete(c.ended, timeKey(a.To, key)); err != nil {
			return err
		}
	}
	return c.delete(c.history, key)
}

// dropRecord removes the record under a key. Its history stays.
func (c *change) dropRecord(key []byte) error {
	r := c.row(key)
	if err := c.dropRef(r.digest()); err != nil {
		return err
	}
	if err := c.delete(c.seen, timeKey(r.newest(), key)); err != nil {
		return err
	}
	return c.delete(c.records, key)
}
