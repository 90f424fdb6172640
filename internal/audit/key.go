package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	stdhash "hash"
)

// A Key is the secret of a chain's hashes: a record that verifies with it was made with it.
// A hash without a key can be computed from the record alone.
type Key []byte

// ID identifies the key without revealing it. It is empty where there is no key.
func (k Key) ID() string {
	if len(k) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte("robotsgate: ID of an audit log's key")) // no record begins like this
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// A hash is one in hexadecimal.
type hash [2 * sha256.Size]byte

// A digester makes hashes. It is kept, since sha256.Sum256 allocates twice where its calls
// are inlined.
type digester struct {
	hash stdhash.Hash
	sum  []byte
}

func newDigester(key Key) digester {
	d := digester{sum: make([]byte, 0, sha256.Size)}
	if len(key) == 0 {
		d.hash = sha256.New()
	} else {
		d.hash = hmac.New(sha256.New, key)
	}
	return d
}

func (d *digester) digest(b []byte) (h hash) {
	d.hash.Reset()
	d.hash.Write(b)
	d.sum = d.hash.Sum(d.sum[:0])
	hex.Encode(h[:], d.sum)
	return h
}

// digesters are by the IDs of their keys. There is always one without a key.
type digesters map[string]*digester

func newDigesters(keys ...Key) digesters {
	all := digesters{}
	for _, key := range append([]Key{nil}, keys...) {
		all[key.ID()] = new(newDigester(key))
	}
	return all
}

// intact reports whether a line, without its end, has the hash that it says, and whether
// its key is at hand to tell.
func (d digesters) intact(line []byte, key string) (ok, known bool) {
	const tail = len(`,"hash":"`) + 2*sha256.Size + len(`"}`)
	digester, known := d[key]
	if !known || len(line) < tail {
		return false, known
	}
	body, end := line[:len(line)-tail], string(line[len(line)-tail:])
	want := digester.digest(body)
	return end == `,"hash":"`+string(want[:])+`"}`, true
}
