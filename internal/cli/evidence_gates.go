package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence"
	"robotsgate/internal/evidence/bundle"
	"robotsgate/internal/gate"
	"robotsgate/internal/terminal"
)

// gates are the gates that have written the logs, by their configurations.
type gates struct {
	configs []*gate.Config
	keys    *evidence.Keys
	texts   []string         // the verifier keys of the logs
	known   []evidence.Known // checkpoints that they keep
}

// loadGates loads configurations; without one the defaults hold.
func loadGates(files []string) (*gates, error) {
	if len(files) == 0 {
		files = []string{""}
	}
	g := &gates{}
	var witnesses []string
	for _, file := range files {
		c, err := Configured{file}.load()
		if err != nil {
			return nil, err
		}
		signer, err := datadir.Signer(c)
		if err != nil {
			return nil, err
		}
		known, err := datadir.Checkpoints(c)
		if err != nil {
			return nil, err
		}
		g.configs, g.known = append(g.configs, c), append(g.known, known...)
		g.texts = append(g.texts, signer.Key())
		for _, w := range c.Log.Audit.Witnesses {
			witnesses = append(witnesses, w.Key)
		}
	}
	var err error
	g.keys, err = evidence.ParseKeys(g.texts, witnesses)
	return g, err
}

// openEvidence opens the evidence of the gates. The caller closes it.
func (g *gates) openEvidence(files []string) (all bundle.Several, closeAll func(), err error) {
	closeAll = func() {
		for _, e := range all {
			e.(datadir.Evidence).Close()
		}
	}
	for i, c := range g.configs {
		file := ""
		if len(files) > 0 {
			file = files[i]
		}
		reader, dir, err := datadir.Snapshots(c, file)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all = append(all, datadir.Evidence{Reader: reader, Dir: dir})
	}
	return all, closeAll, nil
}

// collect verifies whole logs and selects records. The caller closes the Collector. A log with a fault is console.Exit(1).
func (g *gates) collect(s console.Streams, filter *audit.Filter, files []string) (*bundle.Collector, []evidence.Report, error) {
	if err := canOpen(files); err != nil {
		return nil, nil, err
	}
	c, err := bundle.NewCollector(filter)
	if err != nil {
		return nil, nil, err
	}
	v := evidence.NewVerifier(evidence.VerifyOptions{Keys: g.keys, Known: g.known, Leaf: c.Leaf, Node: c.Node})
	done := console.NewProgress(nil)
	stop := terminal.NewStatusLine(s.Err, os.Getenv).Follow(done.Text, false)
	var lineErr error
	readErr := audit.Texts(byTime(files), s.In, func(file string, line evidence.Text) {
		v.Line(file, line)
		if err := c.Line(line.Text); lineErr == nil {
			lineErr = err
		}
		done.Lines.Add(1)
	})
	v.End()
	stop()
	err = cmp.Or(lineErr, readErr)
	for _, text := range v.Notes {
		s.Note("note: %s", text)
	}
	for _, text := range v.Faults {
		s.Note("%s", text)
	}
	if err == nil && v.Faulty > 0 {
		s.Note("a log that does not verify proves nothing, so nothing is made of it: audit --verify says more")
		err = console.Exit(1)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, v.Logs, nil
}

// byTime sorts logs by the time of their first line, so that records are in their order in a bundle. One that can't be
// read stays where it is, as does standard input.
func byTime(files []string) []string {
	times := map[string]time.Time{}
	for _, file := range files {
		times[file] = firstTime(file)
	}
	return slices.SortedStableFunc(slices.Values(files), func(a, b string) int { return times[a].Compare(times[b]) })
}

func firstTime(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() { // what is read from a pipe can't be read again
		return time.Time{}
	}
	var first struct{ Time time.Time }
	for line, err := range evidence.Lines(file, nil) {
		if err == nil {
			_ = json.Unmarshal(line.Text, &first) // the verifier reports a line that is none
		}
		break
	}
	return first.Time
}

var errNoLogs = fmt.Errorf("which audit log? The key log.audit of the gate's configuration names it; name its rotated files too")
