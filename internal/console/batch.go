package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxLine bounds one line of a batch, in bytes. It is many times the size of a robots.txt
// in base64.
const maxLine = 64 << 20

// Batch reads JSON lines from s.In and writes an answer for each, in order. The answer to
// an invalid line is an error, and the command ends with status 2.
func Batch(s Streams, answer func(line []byte) (any, error)) error {
	out := bufio.NewWriterSize(s.Out, 64<<10) // keeps its first error
	in := bufio.NewScanner(flushingReader{s.In, out})
	in.Buffer(make([]byte, 64<<10), maxLine)
	failed := false
	for in.Scan() {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		v, err := answer(in.Bytes())
		if err != nil {
			failed = true
			v = map[string]string{"error": err.Error()}
		}
		if err := JSON(out, v); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if failed {
		return Exit(2)
	}
	return nil
}

// A flushingReader writes all answers before it waits for input: an interactive program
// sends its next line after the answer.
type flushingReader struct {
	io.Reader
	out *bufio.Writer
}

func (r flushingReader) Read(p []byte) (int, error) {
	if err := r.out.Flush(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Question decodes a line of a batch into q.
func Question(line []byte, q any) error {
	if !utf8.Valid(line) { // RFC 8259, section 8.1; encoding/json would replace the bytes
		return errors.New("not UTF-8; a robots.txt of any other bytes can be given as robots_b64, a page as html_b64")
	}
	if err := json.Unmarshal(line, q); err != nil {
		return fmt.Errorf("not a JSON object of this kind: %w", err)
	}
	return nil
}
