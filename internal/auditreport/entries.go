package auditreport

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// An entryPrinter prints entries one by one.
type entryPrinter struct {
	out   *bufio.Writer // keeps its first error
	json  bool          // as they stand in the log, not in words
	found int
}

func (p *entryPrinter) print(l *audit.Line) error {
	p.found++
	if p.json {
		_, err := fmt.Fprintf(p.out, "%s\n", l.Printable())
		return err
	}
	if p.found > 1 {
		fmt.Fprintln(p.out)
	}
	return printReport(p.out, "story", entryText{l.Record, l.At()})
}

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

// List prints the entries that the filter selects.
func List(s console.Streams, a Options) error {
	s, out := buffered(s)
	p := &entryPrinter{out: out, json: a.JSON}
	var printErr error
	var invalid invalidLines
	readErr := a.lines(s, nil, new(atomic.Int64), func(l *audit.Line) {
		invalid.add(l)
		if l.Record != nil && printErr == nil {
			printErr = p.print(l)
		}
		if l.File == "-" { // a pipe may go on for hours
			_ = out.Flush()
		}
	})
	invalid.warn(s)
	if err := cmp.Or(printErr, out.Flush(), readErr); err != nil {
		return err
	}
	switch {
	case p.found == 0 && a.Filter.ID == "":
		s.Note("no record fits the options")
	case p.found == 0:
		s.Note("no record with the id %s is selected: name the rotated files of the log too, and leave out other options that select records", a.Filter.ID)
		return console.Exit(1)
	}
	return nil
}
