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

func (a *replayReport) end() bool {
	a.reader.Close()
	return a.counts[replay.Different] > 0 || a.sum(replay.Outcome.Changed) > 0
}

// sum returns the number of records with an outcome of this kind.
func (a *replayReport) sum(kind func(replay.Outcome) bool) (n int) {
	for o, count := range a.counts {
		if kind(o) {
			n += count
		}
	}
	return n
}

func (a *replayReport) json() (string, any) {
	counts := map[string]int{}
	for _, o := range replay.Outcomes {
		counts[strings.ReplaceAll(string(o), " ", "_")] = a.counts[o]
	}
	return "replay", map[string]any{"counts": counts, "differences": a.differences, "invalid": a.noRecord}
}

func (a *replayReport) print(w io.Writer) {
	fmt.Fprintf(w, "decided again: %s the same, %s, evidence gone: %d, no decision: %d",
		plural(a.counts[replay.Same], "record"), plural(a.counts[replay.Different], "difference"), a.sum(replay.Outcome.Gone), a.counts[replay.NoDecision])
	if n := a.sum(replay.Outcome.Changed); n > 0 {
		fmt.Fprintf(w, ", evidence changed: %d", n)
	}
	fmt.Fprintln(w)
	for _, o := range replay.Outcomes {
		if (o.Gone() || o.Changed()) && a.counts[o] > 0 {
			fmt.Fprintf(w, "  %s: %d, first %s\n", o, a.counts[o], a.examples[o])
		}
	}
	if a.noRecord > 0 {
		fmt.Fprintf(w, "  no records: %s\n", plural(a.noRecord, "line"))
	}
}
