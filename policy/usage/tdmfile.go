package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
	"unsafe"

	"robotsgate/policy/robotstxt"
)

// maxEntries is how many entries of a tdmrep.json are read, the first ones.
const maxEntries = 10_000

// A TDMFile is a /.well-known/tdmrep.json. It is immutable, and so safe for use by several
// goroutines at once.
type TDMFile struct {
	entries []tdmEntry
}

// A tdmEntry is an entry that can be read.
type tdmEntry struct {
	location    robotstxt.Pattern
	reservation value
	policy      string // as written; "" if there is none
}

// ParseTDMRep reads the text of a /.well-known/tdmrep.json. A text that is not such a file is an error;
// it states nothing. An entry that cannot be read is passed over. The caller bounds the text: its
// memory and time are linear.
func ParseTDMRep(text []byte) (*TDMFile, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	switch {
	case !utf8.Valid(text): // RFC 8259, 8.1
		return nil, errors.New("tdmrep.json is not in UTF-8")
	case !json.Valid(text): // also if it is nested deeper than 10,000 levels
		return nil, errors.New("tdmrep.json is not valid JSON")
	case !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")):
		return nil, errors.New("tdmrep.json is not an array; its brackets are mandatory")
	}
	f := &TDMFile{}
	list := json.NewDecoder(bytes.NewReader(text))
	if _, err := list.Token(); err != nil { // its bracket
		return nil, err
	}
	for n := 0; n < maxEntries && list.More(); n++ {
		var raw json.RawMessage
		if err := list.Decode(&raw); err != nil {
			return nil, err
		}
		if e, ok := readEntry(raw); ok {
			f.entries = append(f.entries, e)
		}
	}
	return f, nil
}

// Size returns about how many bytes of memory the file keeps.
func (f *TDMFile) Size() int {
	n := int(unsafe.Sizeof(*f)) + cap(f.entries)*int(unsafe.Sizeof(tdmEntry{}))
	for i := range f.entries {
		const rounding = 16 // of each text, which has memory of its own
		n += f.entries[i].location.Octets() + len(f.entries[i].policy) + rounding
	}
	return n
}

// readEntry reads an entry. Names are case-sensitive, unlike those of a struct for package json.
func readEntry(raw json.RawMessage) (e tdmEntry, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return tdmEntry{}, false
	}
	location, _ := jsonValue(members["location"]).(string)
	if location == "" || location[0] != '/' && location[0] != '*' {
		return tdmEntry{}, false
	}
	e = tdmEntry{location: robotstxt.NewPattern(location)}
	e.policy, _ = jsonValue(members[tdmPolicy]).(string)
	switch jsonValue(members[tdmReservation]) {
	case 0.0, "0":
		e.reservation = yes
	case 1.0, "1":
		e.reservation = no
	}
	return e, e.reservation != unknown
}

// jsonValue returns the value of a text, nil if it is none.
func jsonValue(raw json.RawMessage) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// tdmEntry returns the first entry that matches the path (TDM, TDM File); nil if there is none.
func (c *collector) tdmEntry() *tdmEntry {
	if c.in.TDMRep == nil {
		return nil
	}
	entries := c.in.TDMRep.entries
	for i := range entries {
		if !c.matches(entries[i].location) {
			continue
		}
		if c.matcher.Exhausted() { // it is not certain which entry is the first, so no "n" must be lost
			reserves := func(e tdmEntry) bool { return e.reservation == no }
			i += max(0, slices.IndexFunc(entries[i:], reserves))
		}
		return &entries[i]
	}
	return nil
}
