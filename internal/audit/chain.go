package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Link connects a record to the one before it, so that a record that is changed, missing
// or added is found. The hash is that of the line up to its own member, and so of the hash
// before: SHA-256, or with a key HMAC-SHA256.
type Link struct {
	Lost   int    `json:"lost,omitempty"`   // records before this one that could not be written
	Chain  string `json:"chain,omitempty"`  // of one gate, from its start to its end
	Key    string `json:"key,omitempty"`    // of the hash, see [Key.ID]; empty: none
	Number int64  `json:"number,omitempty"` // in the chain, from 1
	Begins bool   `json:"begins,omitempty"` // the record is the first of a file
	Moved  bool   `json:"moved,omitempty"`  // the chain continues here in a file that another gate has begun
	Prev   string `json:"prev,omitempty"`   // hash of the record before
	Hash   string `json:"hash,omitempty"`
}

// A chain numbers and links the records of one gate. Each start of a gate begins a new one:
// so gates that write to one file share none, and how an earlier one ended does not matter.
type chain struct {
	id     string
	key    Key
	keyID  string
	number int64
	hash   string // of the last record
}

// genesis is the hash before the first record.
var genesis = strings.Repeat("0", 2*sha256.Size)

func newChain(key Key) chain {
	return chain{id: rand.Text(), key: key, keyID: key.ID(), hash: genesis}
}

// link appends the line of a record to out, with its link. Of l it takes Lost and the place
// of the record.
func (c *chain) link(out, line []byte, l Link) []byte {
	c.number++
	o := object{b: append(out, bytes.TrimSuffix(line, []byte("}\n"))...)}
	o.positive("lost", int64(l.Lost))
	o.text("chain", c.id)
	o.optional("key", c.keyID)
	o.number("number", c.number)
	o.flag("begins", l.Begins)
	o.flag("moved", l.Moved)
	o.text("prev", c.hash)
	c.hash = c.key.hash(o.b[len(out):])
	o.text("hash", c.hash)
	return append(o.b, "}\n"...)
}

// A Key is the secret of a chain's hashes: without it no record can be made up. A hash
// without a key can be computed from the record alone.
type Key []byte

// ID identifies the key without revealing it. It is empty if there is no key.
func (k Key) ID() string {
	if len(k) == 0 {
		return ""
	}
	return k.hash([]byte("robotsgate: ID of an audit log's key"))[:16] // no record begins like this
}

// hash returns a hash in hexadecimal.
func (k Key) hash(b []byte) string {
	var text [2 * sha256.Size]byte // not EncodeToString, which allocates twice
	if len(k) == 0 {
		sum := sha256.Sum256(b)
		return string(hex.AppendEncode(text[:0], sum[:]))
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(b)
	return string(hex.AppendEncode(text[:0], mac.Sum(nil)))
}

// A keyring has keys by their IDs, and always the absence of one.
type keyring map[string]Key

func newKeyring(keys ...Key) keyring {
	all := keyring{"": nil}
	for _, key := range keys {
		all[key.ID()] = key
	}
	return all
}

// intact reports whether a line, without its end, has the hash that it states. It is not
// known if the key with this ID is missing.
func (r keyring) intact(line []byte, id string) (ok, known bool) {
	const tail = len(`,"hash":"`) + 2*sha256.Size + len(`"}`)
	key, known := r[id]
	if !known || len(line) < tail {
		return false, known
	}
	body, end := line[:len(line)-tail], line[len(line)-tail:]
	return string(end) == `,"hash":"`+key.hash(body)+`"}`, true
}
