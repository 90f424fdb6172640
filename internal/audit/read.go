package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
)

// maxLine bounds a line that is read, in bytes. It is several times as long as the longest
// record.
const maxLine = 1 << 20

var errLong = fmt.Errorf("longer than %d bytes", maxLine)

// A Line is one line of a log. It is valid until the next.
type Line struct {
	File   string
	Number int
	Text   []byte // without its end
	Record *Record
	Err    error // why there is no record
	Open   bool  // the file ends in the line, without an end of line
}

// At returns the file and the number of the line.
func (l *Line) At() string { return fmt.Sprintf("%s:%d", l.File, l.Number) }

// Half reports whether the line is the first part of a record, the end of which is being written or
// has been cut off.
func (l *Line) Half() bool {
	return l.Record == nil && l.Open && l.Err != errLong && isPartOfRecord(l.Text)
}

// Printable returns the line of a record so that it can be printed on a terminal. A line that a gate
// has written stays as it is.
func (l *Line) Printable() []byte {
	text := bytes.ToValidUTF8(bytes.TrimSpace(l.Text), []byte("\uFFFD"))
	if bytes.ContainsAny(text, "\r\t") { // which JSON has between values only
		var compact bytes.Buffer
		if json.Compact(&compact, text) == nil {
			text = compact.Bytes()
		}
	}
	return escape.JSON(text)
}

// Lines calls each for every line of the files that is neither empty nor a checkpoint; see [Texts].
func Lines(files []string, stdin io.Reader, each func(*Line)) error {
	return Texts(files, stdin, func(file string, number int, text []byte, open bool) {
		if line := ParseLine(file, number, text, open); line != nil {
			each(line)
		}
	})
}

// Texts calls each for every line of the files that is not empty, in order; "-" is stdin. It reads gzipped files too.
// It reads the other files if one can't be read, and then returns the error. A line longer than maxLine has no text.
// Open says that the line has no end.
func Texts(files []string, stdin io.Reader, each func(file string, number int, text []byte, open bool)) error {
	var errs []error
	for _, name := range files {
		number := 0
		err := textsOf(name, stdin, func(text []byte, long, open bool) {
			if number++; long || len(bytes.TrimSpace(text)) > 0 {
				each(name, number, text, open)
			}
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: after line %d: %w", name, number, err))
		}
	}
	return errors.Join(errs...)
}

// ParseLine returns a line that Texts has read, nil if it is a checkpoint.
func ParseLine(file string, number int, text []byte, open bool) *Line {
	if evidence.IsCheckpoint(text) && !open {
		return nil
	}
	l := &Line{File: file, Number: number, Text: text, Open: open, Err: errLong}
	if text != nil {
		l.Record, l.Err = parse(text)
	}
	return l
}

// textsOf calls each for every line of a file, as it is or gzipped; see scan.
func textsOf(name string, stdin io.Reader, each func(text []byte, long, open bool)) error {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	r := bufio.NewReaderSize(in, maxLine)
	if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		in = z
	} else {
		in = r
	}
	return scan(in, each)
}

// scan calls each for every line of in, without its end. Long says that the line is longer than
// maxLine: then it has no text. Open says that the line has no end.
func scan(in io.Reader, each func(text []byte, long, open bool)) error {
	r := bufio.NewReaderSize(in, maxLine)
	for {
		text, err := r.ReadSlice('\n')
		long := err == bufio.ErrBufferFull
		for err == bufio.ErrBufferFull {
			text = nil
			_, err = r.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return err
		}
		each(bytes.TrimSuffix(text, []byte{'\n'}), long, err == io.EOF)
		if err == io.EOF {
			return nil
		}
	}
}

func parse(text []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, errors.New("not a JSON object of this kind")
	}
	if r.Time.IsZero() || r.Method == "" && r.URL == "" && r.Origin == "" {
		return nil, errors.New("not a record of a request")
	}
	return &r, nil
}
