package audit

import (
	"fmt"

	"robotsgate/internal/console"
	"robotsgate/internal/logtext"
	"robotsgate/internal/replay"
)

// A Replay has what records are decided again with.
type Replay struct {
	*replay.Replayer
	Dir    string // data_dir, with the evidence
	Gate   string // that data_dir is of; empty: not known
	Config string // the file that names it
}

// A replayReport decides records again, from the evidence that is kept.
type replayReport struct {
	*Replay
	s  console.Streams
	id string // of the record; empty: all

	counts   map[replay.Outcome]int
	foreign  int // records of other gates without their evidence
	examples map[replay.Outcome]string
	noEntry  int
}

func (a *replayReport) Line(l *Line) {
	if l.Record == nil {
		a.noEntry++
		return
	}
	o, why := a.Replay.Replay(l.Record)
	a.counts[o]++
	if g := l.Record.Gate; o.Gone() && g != "" && a.Gate != "" && g != a.Gate {
		a.foreign++
	}
	text := logtext.Printable(fmt.Sprintf("%s: %s: %s", l.At(), l.Record.ID, why))
	switch {
	case o == replay.Different:
		fmt.Fprintln(a.s.Out, text)
	case (o.Gone() || o.Changed()) && a.examples[o] == "":
		a.examples[o] = text
	}
}

// A replayResult is the result of a replayReport.
type replayResult struct {
	Counts   map[string]int // by outcome
	Invalid  int            // lines without a record
	Gone     int
	Changed  int
	Examples []string // of evidence that is gone or changed
}

func (a *replayReport) result() (string, any, bool) {
	r := replayResult{Counts: map[string]int{}, Invalid: a.noEntry}
	for _, o := range replay.Outcomes {
		n := a.counts[o]
		r.Counts[o.Key()] = n
		switch {
		case o.Gone():
			r.Gone += n
		case o.Changed():
			r.Changed += n
		}
		if first := a.examples[o]; first != "" {
			r.Examples = append(r.Examples, fmt.Sprintf("%s: %d, first %s", o, n, first))
		}
	}
	if a.foreign > 0 {
		a.s.Note("of the records without their evidence, %d are of other gates than %s, which has this data_dir: replay each gate's log with its -c", a.foreign, a.Gate)
	}
	checked := a.counts[replay.Same] + a.counts[replay.Different] + r.Changed
	switch {
	case checked == 0 && r.Gone > 0:
		a.s.Warn("nothing could be checked: %s", a.needed())
		return "replay", r, true
	case len(a.counts) == 0 && a.id != "":
		a.s.Warn("nothing could be checked: no record has the id %s", a.id)
		return "replay", r, true
	}
	return "replay", r, a.counts[replay.Different] > 0 || r.Changed > 0
}

// needed says what a replay needs that could not check any entry.
func (a *replayReport) needed() string {
	switch {
	case a.counts[replay.NoConfiguration]+a.counts[replay.NoSnapshot]+a.counts[replay.NotInForce] == 0:
		return "the records are without the values of their queries, as log.redact_query asks for"
	case a.Config == "":
		return a.Dir + " is not the data_dir of the gate that wrote these records, or no longer has their evidence: name the gate's configuration with -c"
	}
	return a.Dir + ", the data_dir of " + a.Config + ", is not that of the gate that wrote these records, or no longer has their evidence: robots.keep says for how long it is kept"
}
