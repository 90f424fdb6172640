package evidence

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"iter"
	"os"
)

// MaxLine bounds a line that is read, in bytes. It is several times as long as the longest entry.
const MaxLine = 1 << 20

// A Text is a line of a file. It is valid until the next one.
type Text struct {
	Number int
	Text   []byte // without its end
	Long   bool   // it is longer than MaxLine, and has no text
	Open   bool   // the file ends in the line, without an end of line
}

// Lines returns the lines of a file, as it is or gzipped; "-" is stdin. An error is the last that it returns.
func Lines(name string, stdin io.Reader) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		in := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				yield(Text{}, err)
				return
			}
			defer f.Close()
			in = f
		}
		r := bufio.NewReaderSize(in, MaxLine)
		if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" {
			z, err := gzip.NewReader(r)
			if err != nil {
				yield(Text{}, err)
				return
			}
			r = bufio.NewReaderSize(z, MaxLine)
		}
		for number := 1; ; number++ {
			text, err := r.ReadSlice('\n')
			long := err == bufio.ErrBufferFull
			for err == bufio.ErrBufferFull {
				text = nil
				_, err = r.ReadSlice('\n')
			}
			if err != nil && err != io.EOF {
				yield(Text{Number: number}, err)
				return
			}
			if !yield(Text{number, bytes.TrimSuffix(text, []byte{'\n'}), long, err == io.EOF}, nil) || err == io.EOF {
				return
			}
		}
	}
}
