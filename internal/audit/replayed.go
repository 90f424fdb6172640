package audit

import (
	"cmp"
	"fmt"

	"robotsgate/internal/console"
	"robotsgate/internal/logtext"
	"robotsgate/internal/replay"
)

// A Replay has what records are decided again with.
type Replay struct {
	*replay.Replayer
	Dir string // data_dir, with the evidence
}

// A replayReport decides records again, from the evidence that is kept.
type replayReport struct {
	*Replay
	s  console.Streams
	id string // of the record; empty: all

	Same, Different, NoDecision, Gone, Changed int
	Invalid                                    int // lines without a record
	FirstGone, FirstChanged                    string
}

func (a *replayReport) Line(l *Line) {
	if l.Record == nil {
		a.Invalid++
		return
	}
	outcome, why := a.Replay.Replay(l.Record)
	text := logtext.Printable(fmt.Sprintf("%s: %s: %s", l.At(), l.Record.ID, why))
	switch outcome {
	case replay.Same:
		a.Same++
	case replay.Different:
		a.Different++
		fmt.Fprintln(a.s.Out, text)
	case replay.NoDecision:
		a.NoDecision++
	case replay.Gone:
		a.Gone++
		a.FirstGone = cmp.Or(a.FirstGone, text)
	case replay.Changed:
		a.Changed++
		a.FirstChanged = cmp.Or(a.FirstChanged, text)
	}
}

func (a *replayReport) result() (template string, failed bool) {
	switch checked := a.Same + a.Different + a.Changed; {
	case checked == 0 && a.Gone > 0:
		a.s.Warn("nothing could be checked: %s does not have the evidence of these records: "+
			"it is not of the gate that wrote them, robots.keep is over, or log.redact_query has removed what they need; -c names a gate's configuration", a.Dir)
		failed = true
	case checked+a.NoDecision == 0 && a.id != "":
		a.s.Warn("nothing could be checked: no record has the id %s", a.id)
		failed = true
	}
	return "replay", failed || a.Different+a.Changed > 0
}
