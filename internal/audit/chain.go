package audit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	stdhash "hash"
	"strconv"
	"strings"
)

// A Link holds a record fast to the one before it, so that a record that is
// changed, missing or added is found. The hash is SHA-256 of the line up to its own
// member, of which the hash before is a part.
type Link struct {
	Lost   int    `json:"lost,omitempty"`   // records before this one that could not be written
	Chain  string `json:"chain,omitempty"`  // a gate's, from its start to its end
	Number int64  `json:"number,omitempty"` // in the chain, from 1
	Begins bool   `json:"begins,omitempty"` // a file begins with it
	Moved  bool   `json:"moved,omitempty"`  // the chain goes on in another file with it, which others have begun
	Prev   string `json:"prev,omitempty"`   // hash of the record before
	Hash   string `json:"hash,omitempty"`
}

// A chain numbers and links the records of one gate. It is made anew at every
// start: then no two gates can share one, whatever they write to, and none has to
// find out how an earlier one ended.
type chain struct {
	id     string
	number int64
	hash   hash // of the last record
	digester
}

// A hash is one in hexadecimal.
type hash [2 * sha256.Size]byte

// genesis is the hash before the first record.
var genesis = strings.Repeat("0", 2*sha256.Size)

func newChain() chain {
	return chain{id: rand.Text(), hash: hash([]byte(genesis)), digester: newDigester()}
}

// Places of a record, as members of its line.
const (
	begins = `,"begins":true`
	moved  = `,"moved":true`
)

// link appends a line, which ends in "}\n", with its link. Place is one of those above,
// or empty.
func (c *chain) link(out, line []byte, lost int, place string) []byte {
	start := len(out)
	c.number++
	out = append(out, bytes.TrimSuffix(line, []byte("}\n"))...)
	if lost > 0 {
		out = strconv.AppendInt(append(out, `,"lost":`...), int64(lost), 10)
	}
	out = append(append(out, `,"chain":"`...), c.id...)
	out = strconv.AppendInt(append(out, `","number":`...), c.number, 10)
	out = append(append(append(append(out, place...), `,"prev":"`...), c.hash[:]...), '"')
	c.hash = c.digest(out[start:])
	out = append(append(out, `,"hash":"`...), c.hash[:]...)
	return append(out, "\"}\n"...)
}

// A digester is kept, since sha256.Sum256 allocates twice where its calls are inlined.
type digester struct {
	sha256 stdhash.Hash
	sum    []byte
}

func newDigester() digester { return digester{sha256.New(), make([]byte, 0, sha256.Size)} }

func (d *digester) digest(b []byte) (h hash) {
	d.sha256.Reset()
	d.sha256.Write(b)
	d.sum = d.sha256.Sum(d.sum[:0])
	hex.Encode(h[:], d.sum)
	return h
}

func digest(b []byte) hash {
	d := newDigester()
	return d.digest(b)
}

// intact reports whether a line, without its end, has the hash that it says.
func intact(line []byte) bool {
	const tail = len(`,"hash":"`) + 2*sha256.Size + len(`"}`)
	if len(line) < tail {
		return false
	}
	body, end := line[:len(line)-tail], string(line[len(line)-tail:])
	want := digest(body)
	return end == `,"hash":"`+string(want[:])+`"}`
}
