package auditreport

import (
	"errors"
	"fmt"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/logtext"
	"robotsgate/internal/replay"
)

// A replayReport decides entries again, from the evidence that is kept.
type replayReport struct {
	replayer *replay.Replayer
	s        console.Streams
	dir      string // data_dir
	gate     string // that data_dir is of; empty: not known
	config   string // the file of -c
	id       string // of the record; empty: all

	counts   map[replay.Outcome]int
	foreign  int // records of other gates without their evidence
	examples map[replay.Outcome]string
	noEntry  int
}

func (a *Options) newReplayReport(c *gate.Config, s console.Streams) (*replayReport, error) {
	archive, dir, err := gate.OpenSnapshots(c, s)
	if errors.Is(err, gate.ErrNoSnapshots) {
		s.Status(err)
		return nil, console.Exit(1) // as for other evidence that is gone
	}
	if err != nil {
		return nil, err
	}
	r := replay.New(gate.Evidence{Reader: archive, Dir: dir}, gate.KeptSettings)
	id, _ := gate.ReadID(dir) // none in a folder of an earlier version
	return &replayReport{
		replayer: r, s: s, dir: dir, gate: id, config: c.File(), id: a.ID,
		counts: map[replay.Outcome]int{}, examples: map[replay.Outcome]string{},
	}, nil
}

func (a *replayReport) Line(l *audit.Line) {
	if l.Record == nil {
		a.noEntry++
		return
	}
	o, why := a.replayer.Replay(l.Record)
	a.counts[o]++
	if g := l.Record.Gate; o.Gone() && g != "" && a.gate != "" && g != a.gate {
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
		a.s.Note("of the records without their evidence, %d are of other gates than %s, which has this data_dir: replay each gate's log with its -c", a.foreign, a.gate)
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
	case a.config == "":
		return a.dir + " is not the data_dir of the gate that wrote these records, or no longer has their evidence: name the gate's configuration with -c"
	}
	return a.dir + ", the data_dir of " + a.config + ", is not that of the gate that wrote these records, or no longer has their evidence: robots.keep says for how long it is kept"
}
