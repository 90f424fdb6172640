package cli

import (
	"fmt"
	"io"
	"strings"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/internal/escape"
	"robotsgate/internal/replay"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// A replayReport decides records again, from the evidence that is kept.
type replayReport struct {
	replayer *replay.Replayer
	reader   *store.Reader
	out      io.Writer
	quiet    bool

	counts      map[replay.Outcome]int
	examples    map[replay.Outcome]string
	differences []string // for JSON
	noRecord    int
}

func newReplayReport(c *config.Config, out io.Writer, asJSON bool) (*replayReport, error) {
	reader, dir, err := openEvidence(c)
	if err != nil {
		return nil, err
	}
	r := replay.New(replay.Evidence{
		Configuration: func(digest string) (*policy.Config, error) { return configurationOf(dir, digest) },
		History:       reader.History,
		Body:          reader.Body,
	})
	return &replayReport{
		replayer: r, reader: reader, out: out, quiet: asJSON,
		counts: map[replay.Outcome]int{}, examples: map[replay.Outcome]string{}, differences: []string{},
	}, nil
}

// configurationOf returns the settings of a kept configuration.
func configurationOf(dir, digest string) (*policy.Config, error) {
	text, err := store.ReadConfiguration(dir, digest)
	if err != nil {
		return nil, err
	}
	c, err := config.Kept(text)
	if err != nil {
		return nil, err
	}
	p := engineConfig(c, nil, nil, nil, nil)
	return &p, nil
}

func (a *replayReport) Line(l *audit.Line) {
	if l.Record == nil {
		a.noRecord++
		return
	}
	o, why := a.replayer.Replay(l.Record)
	a.counts[o]++
	text := escape.Printable(fmt.Sprintf("%s: %s: %s", l.At(), l.Record.ID, why))
	switch {
	case o == replay.Different && a.quiet:
		const most = 10_000
		if len(a.differences) < most {
			a.differences = append(a.differences, text)
		}
	case o == replay.Different:
		fmt.Fprintln(a.out, text)
	case (o.Gone() || o.Changed()) && a.examples[o] == "":
		a.examples[o] = text
	}
}

// A replayResult is the result of a replayReport.
type replayResult struct {
	Counts      map[string]int `json:"counts"` // by outcome
	Differences []string       `json:"differences"`
	Invalid     int            `json:"invalid"` // lines without a record
	Gone        int            `json:"-"`
	Changed     int            `json:"-"`
	Examples    []string       `json:"-"` // of evidence that is gone or changed
}

func (a *replayReport) result() (string, any, bool) {
	a.reader.Close()
	r := replayResult{Counts: map[string]int{}, Differences: a.differences, Invalid: a.noRecord}
	for _, o := range replay.Outcomes {
		n := a.counts[o]
		r.Counts[strings.ReplaceAll(string(o), " ", "_")] = n
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
	return "replay", r, a.counts[replay.Different] > 0 || r.Changed > 0
}
