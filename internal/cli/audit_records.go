package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
)

// A recordPrinter prints records one by one.
type recordPrinter struct {
	out   *bufio.Writer // keeps its first error
	json  bool          // as they stand in the log
	story bool          // all that a record says, in words
	found int
}

func (p *recordPrinter) print(l *audit.Line) error {
	p.found++
	if p.json {
		_, err := fmt.Fprintf(p.out, "%s\n", l.Printable())
		return err
	}
	name := "record"
	if p.story {
		if name = "story"; p.found > 1 {
			fmt.Fprintln(p.out)
		}
	}
	return printReport(p.out, name, recordText{l.Record, l.At()})
}

// A recordText is a record for people.
type recordText struct {
	*audit.Record
	At string // file and line
}

// Address returns the URL that the client asked for.
func (r recordText) Address() string {
	if r.URL != "" {
		return r.URL
	}
	return r.Origin + r.Path
}

// Passthrough reports whether the request was for a tunnel that is not intercepted.
func (r recordText) Passthrough() bool { return r.Tunnel && r.Path == "" && r.Origin != "" }

// Took returns the time that the request took.
func (r recordText) Took() time.Duration {
	return seconds(r.Duration).Round(10 * time.Microsecond)
}

// Old returns the age of the robots.txt that decided.
func (r recordText) Old() time.Duration { return seconds(float64(r.Robots.Age)) }

// seconds returns a number of a record as a duration, within the bounds of that.
func seconds(n float64) time.Duration {
	return time.Duration(min(max(n, 0), 1e9) * float64(time.Second))
}

// Verdict returns the decision in a word.
func (r recordText) Verdict() string {
	switch {
	case r.Refused != "":
		return "refused"
	case r.Decision == "allow":
		return "allowed"
	case r.Reported():
		return "reported"
	case r.Decision == "deny":
		return "denied"
	}
	return "-"
}

// Why returns the reason of a decision in a few words, or why there is none.
func (r recordText) Why() string {
	text := string(r.Reason)
	switch {
	case r.Refused != "" && r.Error != "":
		text = string(r.Refused) + ": " + r.Error
	case r.Refused != "":
		text = string(r.Refused)
	case r.Decision == "":
		text = r.Error
	case r.Rule != "":
		text += fmt.Sprintf(", line %d: %s", r.Line, r.Rule)
	case r.Note != "":
		text += ": " + r.Note
	}
	return escape.Printable(text)
}

// listRecords prints the records that a filter selects.
func (a *Audit) listRecords(s Streams, out *bufio.Writer, filter *audit.Filter) error {
	p := &recordPrinter{out: out, json: a.JSON, story: a.ID != ""}
	var printErr error
	var invalid invalidLines
	readErr := a.lines(s, filter, func(l *audit.Line) {
		invalid.add(l)
		if l.Record != nil && printErr == nil {
			printErr = p.print(l)
		}
	})
	invalid.warn(s)
	if err := cmp.Or(printErr, out.Flush(), readErr); err != nil {
		return err
	}
	if p.found == 0 && a.ID != "" {
		s.note("no record fits the id %s and the other options: it may be in a file that has been rotated, which must be named, too", a.ID)
		return Exit(1)
	}
	return nil
}
