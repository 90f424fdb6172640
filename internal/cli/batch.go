package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"robotsgate/internal/escape"
)

// maxLine bounds one line of a batch, in bytes. It is many times the size of a robots.txt
// in base64.
const maxLine = 64 << 20

// batch reads JSON lines from s.In and writes an answer for each, in order. The answer to
// an invalid line is an error, and the command ends with status 2. If standard error is a
// terminal, and standard output is not, it shows the progress.
func batch(s Streams, answer func(line []byte) (any, error)) error {
	done := newBatchProgress(s.In)
	if _, ok := terminal(s.Out); !ok {
		defer newStatusLine(s.Err, os.Getenv).follow(done.text, false)()
	}
	in := bufio.NewReaderSize(s.In, 64<<10)
	out := bufio.NewWriterSize(s.Out, 64<<10)
	defer out.Flush()
	failed := false
	for {
		line, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		done.bytes.Add(int64(len(line)))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		v, err := answer(line)
		if err != nil {
			failed = true
			v = map[string]string{"error": err.Error()}
		}
		if err := encode(out, v); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		done.lines.Add(1)
		if in.Buffered() == 0 { // an interactive program waits for the answer
			if err := out.Flush(); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	if failed {
		return Exit(2)
	}
	return nil
}

// encode writes v as one line of JSON, without escapes for HTML.
func encode(w io.Writer, v any) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escape.JSON(line.Bytes()))
	return err
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		case err == nil:
			return line, nil
		case err == io.EOF && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// question decodes a line of a batch into q.
func question(line []byte, q any) error {
	if !utf8.Valid(line) { // RFC 8259, section 8.1; encoding/json would replace the bytes
		return errors.New("not UTF-8; a robots.txt of any other bytes can be given as robots_b64, a page as html_b64")
	}
	err := json.Unmarshal(line, q)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%q can't be a JSON %s", wrong.Field, wrong.Value)
	} else if ok {
		return fmt.Errorf("a JSON %s, not an object", wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	return nil
}
