package snapshot

import (
	"unsafe"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// Paths of the files of origins.
const (
	robotsPath = "/robots.txt"
	TDMRepPath = "/.well-known/tdmrep.json" // TDM Reservation Protocol, TDM File in Origin Server
)

// A content is that of an origin's file, parsed: a *robotstxt.File or a *tdmrepFile. It is immutable.
type content interface {
	Body() string    // the bytes that were parsed
	Truncated() bool // the origin's file is longer than Settings.MaxBytes
	Size() int       // about how many bytes of memory it takes
}

// parse parses the file of a scope, of which at most maxBytes count; 0: all of it.
func parse(s Scope, data []byte, maxBytes int) content {
	if s.TDMRep {
		return parseTDMRep(data, maxBytes)
	}
	return robotstxt.Parse(data, maxBytes)
}

// setFile adds the file in force to the resolution.
func (r *Resolution) setFile(c content) {
	switch f := c.(type) {
	case *robotstxt.File:
		r.File = f
	case *tdmrepFile:
		r.TDMRep = f.stated
	}
}

// A tdmrepFile is an origin's tdmrep.json.
type tdmrepFile struct {
	body   string
	long   bool
	stated *usage.TDMFile // nil if it states nothing
}

// parseTDMRep parses a tdmrep.json. One that is too long states nothing, and is kept as an empty one: what it
// states must not depend on where it is cut.
func parseTDMRep(data []byte, maxBytes int) *tdmrepFile {
	if maxBytes > 0 && len(data) > maxBytes {
		return &tdmrepFile{long: true}
	}
	f := &tdmrepFile{body: string(data)}
	if stated, err := usage.ParseTDMRep(data); err == nil {
		f.stated = stated
	}
	return f
}

func (f *tdmrepFile) Body() string    { return f.body }
func (f *tdmrepFile) Truncated() bool { return f.long }

func (f *tdmrepFile) Size() int {
	n := int(unsafe.Sizeof(*f)) + len(f.body)
	if f.stated != nil {
		n += f.stated.Size()
	}
	return n
}
