package audit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"strconv"
	"strings"
)

// A Link holds a record fast to the one before it, so that a record that is
// changed, missing or added is found. The hash is that of the line up to its own member,
// of which the hash before is a part: SHA-256, or with a key HMAC-SHA256.
type Link struct {
	Lost   int    `json:"lost,omitempty"`   // records before this one that could not be written
	Chain  string `json:"chain,omitempty"`  // a gate's, from its start to its end
	Key    string `json:"key,omitempty"`    // of the hash, see [Key.ID]; empty: none
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
	key    string // its ID
	number int64
	hash   hash // of the last record
	digester
}

// genesis is the hash before the first record.
var genesis = strings.Repeat("0", 2*sha256.Size)

func newChain(key Key) chain {
	return chain{id: rand.Text(), key: key.ID(), hash: hash([]byte(genesis)), digester: newDigester(key)}
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
	if c.key != "" {
		out = append(append(out, `","key":"`...), c.key...)
	}
	out = strconv.AppendInt(append(out, `","number":`...), c.number, 10)
	out = append(append(append(append(out, place...), `,"prev":"`...), c.hash[:]...), '"')
	c.hash = c.digest(out[start:])
	out = append(append(out, `,"hash":"`...), c.hash[:]...)
	return append(out, "\"}\n"...)
}
