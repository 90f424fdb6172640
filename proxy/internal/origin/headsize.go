package origin

import "bytes"

// maxHeadLines bounds the lines of a head.
const maxHeadLines = 4096

// A headSize counts the lines of a response's head while it is read. The number of bytes is not enough: a
// field of five bytes takes hundreds when it has been parsed.
type headSize struct {
	bytes  int64
	lines  int64
	length int   // of the current line
	ended  bool  // the blank line has been read
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

// check returns an error if the head has too many lines.
func (h *headSize) check() error {
	if h.lines > maxHeadLines {
		h.err = errLongHead
	}
	return h.err
}
