package console

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestBatchLine: a line of a batch may have 64 MiB. A longer one ends the batch, after the answers to those before it.
func TestBatchLine(t *testing.T) {
	for length, long := range map[int]bool{64<<20 - 1: false, 64<<20 + 1: true} {
		var out strings.Builder
		in := io.MultiReader(strings.NewReader("1\n"), io.LimitReader(spaces{}, int64(length-1)), strings.NewReader("2\n"))
		err := Batch(Streams{In: in, Out: &out, Err: io.Discard}, func(line []byte) (any, error) { return len(line), nil })
		if errors.Is(err, bufio.ErrTooLong) != long || !strings.HasPrefix(out.String(), "1\n") || strings.Count(out.String(), "\n") == 1 != long {
			t.Errorf("a line of %d bytes: answers %q, error %v", length, out.String(), err)
		}
	}
}

// spaces is text without an end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
