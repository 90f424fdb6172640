package admin

import (
	"slices"
	"time"

	"robotsgate/internal/history"
)

// Bounds of the history on the page of an origin. The command history has all of it.
const (
	maxPast    = 100  // answers
	maxChanged = 1000 // changed lines and those around them, of all answers
)

// A pastRow is an answer in the history, with the changes from the file before it.
type pastRow struct {
	Past
	Before  *Past    // the answer with the file before; nil: there is none, or it is the same file
	Diff    []string // as [history.Diff] returns it
	Missing string   // why Diff is empty, although there is a file before
	More    int      // further lines of the difference
}

// pastRows returns the newest answers with their changes, the newest first, and the number of the
// others. Body returns the file with a digest.
func pastRows(past []Past, body func(sha256 string) (string, error)) (rows []pastRow, others int) {
	last := map[string]*Past{} // with a file, by asker
	for i := range past {
		p := &past[i]
		rows = append(rows, pastRow{Past: *p})
		if p.SHA256 == "" {
			continue
		}
		if before := last[p.Asker]; before != nil && before.SHA256 != p.SHA256 {
			rows[i].Before = before
		}
		last[p.Asker] = p
	}
	slices.Reverse(rows)
	others = max(len(rows)-maxPast, 0)
	rows = rows[:len(rows)-others]
	lines := 0
	for i := range rows {
		if r := &rows[i]; r.Before != nil && lines < maxChanged {
			r.compare(body)
			lines += len(r.Diff)
		} else if r.Before != nil {
			r.Missing = "The differences above are long enough for a page."
		}
	}
	return rows, others
}

// compare finds the changes from the file before.
func (r *pastRow) compare(body func(sha256 string) (string, error)) {
	was, err := body(r.Before.SHA256)
	is, err2 := body(r.SHA256)
	if err != nil || err2 != nil {
		r.Missing = "One of the two files is not kept any more."
		return
	}
	r.Diff, r.More = history.Diff(r.Before.version(), was, r.version(), is)
}

// version names a file in a difference.
func (p *Past) version() string {
	return p.SHA256[:min(12, len(p.SHA256))] + " " + p.From.UTC().Format(time.DateTime)
}
