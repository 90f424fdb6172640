package store

import (
	"bytes"
	"cmp"
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

// add counts a row of the index with the sign n. An origin counts twice if configured crawlers
// and other clients ask for it. Copies that bind one product token belong to another record, and a
// tdmrep.json to an origin that has a robots.txt.
func (u *usage) add(isRecord bool, key, value []byte, n int64) {
	const cost = 16 // of a row in its page, beside its key and value
	u.rows += n * int64(len(key)+len(value)+cost)
	if !isRecord {
		return
	}
	if scope := policy.ParseKey(string(key)); scope.Slot == "" && !scope.TDMRep {
		u.origins += n
	}
}

// A change is a write transaction. It updates the buckets that are derived from records
// and history, and the usage, together with them. After the first error, which is kept, the
// transaction will be rolled back, so the steps need not check for errors.
type change struct {
	tx                              *bbolt.Tx
	records, history, drops, bodies *bbolt.Bucket

	used         usage
	unreferenced map[string]struct{} // digests of bodies that no row names any more
	err          error
}

func newChange(tx *bbolt.Tx, used usage) *change {
	return &change{
		tx: tx, used: used, unreferenced: map[string]struct{}{},
		records: tx.Bucket(recordsBucket), history: tx.Bucket(historyBucket),
		drops: tx.Bucket(dropsBucket), bodies: tx.Bucket(bodiesBucket),
	}
}

func (c *change) fail(err error) { c.err = cmp.Or(c.err, err) }

func (c *change) put(b *bbolt.Bucket, key, value []byte) {
	c.subtract(b, key)
	c.used.add(b == c.records, key, value, 1)
	c.fail(b.Put(key, value))
}

// putJSON puts a value as JSON, with a checksum.
func (c *change) putJSON(b *bbolt.Bucket, key []byte, value any) {
	data, err := json.Marshal(value)
	c.fail(err)
	c.put(b, key, withChecksum(key, data))
}

func (c *change) delete(b *bbolt.Bucket, key []byte) {
	c.subtract(b, key)
	c.fail(b.Delete(key))
}

// subtract takes a row out of the usage, if there is one.
func (c *change) subtract(b *bbolt.Bucket, key []byte) {
	if value := b.Get(key); value != nil {
		c.used.add(b == c.records, key, value, -1)
	}
}

// emptyValue is the value of rows that are all key: bbolt returns the same for an
// empty value and for none.
var emptyValue = []byte{0}

// save makes a record the one under its key. An empty one removes the record there. Answers of the
// record before that the new one lacks become history.
func (c *change) save(scope string, rec policy.Record) {
	key := []byte(scope)
	next := row{Record: rec}
	next.Body = nil // it is a file
	if next.Last == next.Good {
		next.Last = nil
	}
	past := next.follow(c.row(key))
	c.addRef(next.digest(), int64(len(rec.Body))) // before the last row that names it may go
	for _, a := range past {
		c.supersede(scope, a)
	}
	c.dropRecord(key)
	if !rec.Empty() {
		c.put(c.drops, dropKey(fetched, next.newest(), key), emptyValue)
		c.putJSON(c.records, key, next)
	}
}

// row returns the row under a key. It is empty if there is none or if it can't be
// read: such a row must not prevent the next one, though its body stays counted.
func (c *change) row(key []byte) row {
	if r, err := unmarshal[row](key, c.records.Get(key)); err == nil {
		return r
	}
	return row{}
}

// supersede makes an answer history. If there are too many of its scope and kind, the oldest is
// dropped.
func (c *change) supersede(scope string, a Answer) {
	key := historyKey(scope, a, 0)
	for i := 1; c.history.Get(key) != nil; i++ { // another answer of the same nanosecond
		key = historyKey(scope, a, i)
	}
	c.putJSON(c.history, key, a)
	c.put(c.drops, dropKey(superseded, a.To, key), emptyValue)
	c.addRef(a.Snapshot.SHA256, 0)
	if scope == "" {
		return // orphans are bounded only by Limits.Bytes
	}
	var oldest []byte
	n := 0
	for k := range withPrefix(c.history, key[:len(key)-timeSize]) {
		if n++; n == 1 {
			oldest = k
		}
	}
	if n > maxAnswers {
		c.dropAnswer(oldest)
	}
}

// dropAnswer removes an answer from history.
func (c *change) dropAnswer(key []byte) {
	key = bytes.Clone(key) // bbolt's own bytes may move
	if a, err := unmarshal[Answer](key, c.history.Get(key)); err == nil {
		c.dropRef(a.Snapshot.SHA256)
		c.delete(c.drops, dropKey(superseded, a.To, key))
	}
	c.delete(c.history, key)
}

// dropRecord removes the record under a key. Its history stays.
func (c *change) dropRecord(key []byte) {
	r := c.row(key)
	c.dropRef(r.digest())
	c.delete(c.drops, dropKey(fetched, r.newest(), key))
	c.delete(c.records, key)
}
