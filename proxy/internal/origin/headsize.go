package origin

import (
	"bytes"

	"robotsgate/proxy/internal/memory"
)

// maxHeadLines bounds the lines of a head.
const maxHeadLines = 4096

// headStep is how much memory is taken at a time, in bytes.
const headStep = 64 << 10

// A headSize counts the memory that a response's head takes while it is read. The number of bytes is not enough: a
// field of five bytes takes hundreds when it has been parsed.
type headSize struct {
	bytes  int64
	lines  int64
	length int   // of the current line
	ended  bool  // the blank line has been read
	paid   int64 // memory taken for it
	err    error // why no more is read
}

// add counts what has been read, up to the head's end.
func (h *headSize) add(p []byte) {
	for len(p) > 0 && !h.ended {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			h.bytes += int64(len(p))
			h.length += len(p)
			return
		}
		h.ended = h.length+i <= 1 // nothing, or CR
		h.bytes += int64(i + 1)
		h.lines++
		h.length = 0
		p = p[i+1:]
	}
}

// pay takes memory for what has been counted beyond [memory.FreeHeader].
func (h *headSize) pay(from *memory.Reservation) error {
	if h.lines > maxHeadLines {
		h.err = errLongHead
		return h.err
	}
	for h.bytes+h.lines*memory.FieldCost > memory.FreeHeader+h.paid {
		if !from.Take(headStep, memory.ForProgress) {
			h.err = memory.ErrLimit
			return h.err
		}
		h.paid += headStep
	}
	return nil
}
