package audit

import (
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// An entryText is an entry for people.
type entryText struct {
	*record.Record
	At string // file and line
}

// Passthrough reports whether the request was for a tunnel that is not intercepted.
func (r entryText) Passthrough() bool { return r.Tunnel && r.Path == "" && r.Origin != "" }

// Permit returns the override that would allow a request that a decision has refused; "" if there is none.
func (r entryText) Permit() string {
	target, err := canonical.ParseURL(r.Origin + r.Path)
	if err != nil || r.Decision != "deny" || r.Refused != "" || r.Redacted {
		return ""
	}
	method := r.Method
	if r.Path == "" {
		method = http.MethodConnect // a tunnel that is passed through: all that it carries
	}
	o := policy.Permitting(target, method, r.Crawler)
	if o == nil {
		return ""
	}
	return o.Line()
}

// Took returns the time that the request took, rounded.
func (r entryText) Took() time.Duration { return r.Record.Took().Round(10 * time.Microsecond) }

// Waited returns how long the request has waited for its turn.
func (r entryText) Waited() time.Duration {
	return record.Seconds(r.Paced.Held).Round(time.Millisecond)
}

// Old returns the age of the robots.txt that decided.
func (r entryText) Old() time.Duration { return record.Seconds(float64(r.Robots.Age)) }

// printRecord prints all about the request with the id.
func (a *Reading) printRecord(s console.Streams) error {
	s, out := buffered(s)
	var printErr error
	var invalid invalidLines
	found := 0
	readErr := a.lines(s, nil, new(atomic.Int64), func(l *Line) {
		invalid.add(l)
		if l.Record == nil || printErr != nil {
			return
		}
		if found++; found > 1 {
			fmt.Fprintln(out)
		}
		printErr = printReport(out, "story", entryText{l.Record, l.At()})
	})
	invalid.warn(s)
	if err := cmp.Or(printErr, out.Flush(), readErr); err != nil {
		return err
	}
	if found == 0 {
		s.Note("no record has the id %s: name the rotated files of the log too", a.ID)
		return console.Exit(1)
	}
	return nil
}
