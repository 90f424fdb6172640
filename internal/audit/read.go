package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"

	"robotsgate/internal/evidence"
	"robotsgate/internal/record"
)

// A Line is one line of a log. It is valid until the next.
type Line struct {
	File   string
	Number int
	Text   []byte // without its end
	Record *record.Record
	Err    error // why there is no record
	Open   bool  // the file ends in the line, without an end of line
}

// At returns the file and the number of the line.
func (l *Line) At() string { return fmt.Sprintf("%s:%d", l.File, l.Number) }

// Half reports whether the line is the first part of an entry, the end of which is being written or
// has been cut off.
func (l *Line) Half() bool {
	return l.Record == nil && l.Open && bytes.HasPrefix(l.Text, []byte("{"))
}

// readTexts calls each for every line of the files that is not empty, in order; "-" is stdin. It reads gzipped files too.
// It reads the other files if one can't be read, and then returns the error.
func readTexts(files []string, stdin io.Reader, each func(file string, line evidence.Text)) error {
	var errs []error
	for _, name := range files {
		for line, err := range texts(name, stdin) {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: after line %d: %w", name, max(line.Number-1, 0), err))
			} else if len(bytes.TrimSpace(line.Text)) > 0 {
				each(name, line)
			}
		}
	}
	return errors.Join(errs...)
}

// texts returns the lines of a file, each valid until the next. An error is the last that it returns.
func texts(name string, stdin io.Reader) iter.Seq2[evidence.Text, error] {
	return func(yield func(evidence.Text, error) bool) {
		in := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				yield(evidence.Text{}, err)
				return
			}
			defer f.Close()
			in = f
		}
		r := bufio.NewReaderSize(in, evidence.MaxLine)
		if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" {
			z, err := gzip.NewReader(r)
			if err != nil {
				yield(evidence.Text{}, err)
				return
			}
			r = bufio.NewReaderSize(z, evidence.MaxLine)
		}
		for number := 1; ; number++ {
			text, err := r.ReadSlice('\n')
			if err == bufio.ErrBufferFull {
				err = fmt.Errorf("a line longer than %d bytes", evidence.MaxLine)
			}
			if err != nil && err != io.EOF {
				yield(evidence.Text{Number: number}, err)
				return
			}
			if !yield(evidence.Text{Number: number, Text: bytes.TrimSuffix(text, []byte{'\n'}), Open: err == io.EOF}, nil) || err == io.EOF {
				return
			}
		}
	}
}

// ordered returns the files of a log in the order of their entries, and pipes last. Each file begins with a checkpoint.
func ordered(files []string) []string {
	sizes := map[string]int64{}
	for _, file := range files {
		sizes[file] = math.MaxInt64
		if isStream(file) {
			continue
		}
		for line := range texts(file, nil) {
			if l, ok := evidence.ParseLine(line.Text); ok {
				_, sizes[file] = l.Stated()
			}
			break
		}
	}
	return slices.SortedStableFunc(slices.Values(files), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
}

// parseLine returns a line of a file, nil if it is a checkpoint.
func parseLine(file string, text evidence.Text) *Line {
	if evidence.IsCheckpoint(text.Text) && !text.Open {
		return nil
	}
	l := &Line{File: file, Number: text.Number, Text: text.Text, Open: text.Open}
	l.Record, l.Err = parse(text.Text)
	return l
}

func parse(text []byte) (*record.Record, error) {
	var r record.Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, errors.New("not a JSON object of this kind")
	}
	if r.Time.IsZero() || r.Method == "" && r.URL == "" && r.Origin == "" {
		return nil, errors.New("not a record of a request")
	}
	return &r, nil
}
