package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/internal/escape"
	"robotsgate/internal/replay"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// again decides records once more.
type again struct {
	replayer *replay.Replayer
	reader   *store.Reader
	out      io.Writer
	quiet    bool

	counts      map[replay.Outcome]int
	examples    map[replay.Outcome]string
	differences []string // for JSON
	noRecord    int
}

func replaying(dir string, out io.Writer, asJSON bool) (*again, error) {
	reader, err := store.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no snapshots: name the gate's configuration with -c", dir)
	}
	if err != nil {
		return nil, err
	}
	r := replay.New(replay.Evidence{
		Configuration: func(digest string) (*policy.Config, error) { return configurationOf(dir, digest) },
		History:       reader.History,
		Body:          reader.Body,
	})
	return &again{replayer: r, reader: reader, out: out, quiet: asJSON, counts: map[replay.Outcome]int{}, examples: map[replay.Outcome]string{}}, nil
}

// configurationOf returns what was decided by under a configuration that is kept.
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

func (a *again) line(l *audit.Line) {
	if l.Record == nil {
		a.noRecord++
		return
	}
	o, why := a.replayer.Again(l.Record)
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

func (a *again) end() {}
func (a *again) wrong() bool {
	return a.counts[replay.Different] > 0 || a.sum(replay.Outcome.Changed) > 0
}
func (a *again) close() { a.reader.Close() }

// sum counts the records whose outcome is of a kind.
func (a *again) sum(kind func(replay.Outcome) bool) (n int) {
	for o, count := range a.counts {
		if kind(o) {
			n += count
		}
	}
	return n
}

func (a *again) print(w io.Writer) {
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
