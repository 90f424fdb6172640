package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
)

var errLong = fmt.Errorf("longer than %d bytes", evidence.MaxLine)

// A Line is one line of a log. It is valid until the next.
type Line struct {
	File   string
	Number int
	Text   []byte // without its end
	Entry  *Entry
	Err    error // why there is no entry
	Open   bool  // the file ends in the line, without an end of line
}

// At returns the file and the number of the line.
func (l *Line) At() string { return fmt.Sprintf("%s:%d", l.File, l.Number) }

// Half reports whether the line is the first part of an entry, the end of which is being written or
// has been cut off.
func (l *Line) Half() bool {
	return l.Entry == nil && l.Open && l.Err != errLong && isPartOfEntry(l.Text)
}

// Printable returns the line of an entry so that it can be printed on a terminal. A line that a gate
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

// Texts calls each for every line of the files that is not empty, in order; "-" is stdin. It reads gzipped files too.
// It reads the other files if one can't be read, and then returns the error.
func Texts(files []string, stdin io.Reader, each func(file string, line evidence.Text)) error {
	var errs []error
	for _, name := range files {
		for line, err := range evidence.Lines(name, stdin) {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: after line %d: %w", name, max(line.Number-1, 0), err))
			} else if line.Long || len(bytes.TrimSpace(line.Text)) > 0 {
				each(name, line)
			}
		}
	}
	return errors.Join(errs...)
}

// ParseLine returns a line of a file, nil if it is a checkpoint.
func ParseLine(file string, text evidence.Text) *Line {
	if evidence.IsCheckpoint(text.Text) && !text.Open {
		return nil
	}
	l := &Line{File: file, Number: text.Number, Text: text.Text, Open: text.Open, Err: errLong}
	if !text.Long {
		l.Entry, l.Err = parse(text.Text)
	}
	return l
}

func parse(text []byte) (*Entry, error) {
	var r Entry
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, errors.New("not a JSON object of this kind")
	}
	if r.Time.IsZero() || r.Method == "" && r.URL == "" && r.Origin == "" {
		return nil, errors.New("not a record of a request")
	}
	return &r, nil
}
