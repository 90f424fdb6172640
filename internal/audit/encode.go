package audit

import (
	"bytes"
	"encoding/json"

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
)

// lineOf returns the record as a line of JSON, without its place in the log. One that is too long is without its lists.
func lineOf(r record.Record) ([]byte, error) {
	line, err := encode(&r)
	if len(line) > record.Max && len(r.Tags)+len(r.Usage)+len(r.Licenses) > 0 {
		r.Tags, r.Usage, r.Licenses, r.Cut = nil, nil, nil, true
		return encode(&r)
	}
	return line, err
}

// encode returns the record as a line of JSON. Beyond what JSON requires, control characters and characters that change
// the direction of text are escaped.
func encode(r *record.Record) ([]byte, error) {
	var line bytes.Buffer
	line.Grow(1024) // nearly all records are shorter
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // so that a URL with "&" can be searched for
	err := enc.Encode(r)
	return logtext.JSON(line.Bytes()), err
}
