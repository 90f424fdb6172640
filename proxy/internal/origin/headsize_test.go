package origin

import (
	"testing"
)

// The lines of a head are counted however it is divided into reads. Lines of the body are not.
func TestHeadSize(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int64
		lines int64
		ended bool
	}{
		{"HTTP/1.1 200 OK\r\nA: b\r\n", 23, 2, false},
		{"HTTP/1.1 200 OK\r\nA: b\r\n\r\n\n\n\nbody", 25, 3, true},
		{"HTTP/1.1 200 OK\nA: b\n\nbody\n\n", 22, 3, true},
	} {
		for piece := range len(c.text) {
			var h headSize
			for rest := c.text; rest != ""; {
				n := min(len(rest), piece+1)
				h.add([]byte(rest[:n]))
				rest = rest[n:]
			}
			if h.bytes != c.bytes || h.lines != c.lines || h.ended != c.ended {
				t.Errorf("%q in pieces of %d: got %d bytes, %d lines, over %t, want %d, %d, %t", c.text, piece+1, h.bytes, h.lines, h.ended, c.bytes, c.lines, c.ended)
			}
		}
	}
}
