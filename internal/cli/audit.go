package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/internal/escape"
	"robotsgate/internal/replay"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// chainsDir is where in data_dir it is kept how far the audit log's chains have come.
const chainsDir = "chains"

// Audit reads audit logs.
type Audit struct {
	Configured
	Replay bool     `help:"Decide every record again from the evidence that is kept, and print each difference."`
	Verify bool     `help:"Check that no record has been changed, removed or added."`
	Top    int      `default:"20" placeholder:"N" help:"How many hosts and errors are listed."`
	JSON   bool     `help:"Print JSON."`
	File   []string `arg:"" name:"FILE" help:"Audit logs, as they are or gzipped, in any order; - is standard input."`
}

// Help is shown by --help.
func (*Audit) Help() string {
	return "Without options it sums up. -c names the gate's configuration, whose data_dir has the evidence.\n\n" +
		"--replay takes the configuration, the robots.txt and the answers that a record names from data_dir, also while the gate runs. " +
		"Records whose evidence is gone are counted apart, and so are those whose evidence has been changed.\n\n" +
		"--verify checks the chain that each gate links its records to, and with data_dir that its end is there. " +
		"Name all files that have been rotated, too.\n\n" +
		"Exit status 0: nothing differs, 1: something does, or evidence has been changed, 2: an error.\n\n" +
		"Example:\n  robotsgate audit audit.jsonl\n  robotsgate audit -c config.yaml --verify --replay audit*.jsonl"
}

// A reading is what comes of the lines of logs.
type reading interface {
	line(*audit.Line)
	end()
	// print tells a person; wrong says that something differs.
	print(io.Writer)
	wrong() bool
}

// Run reads the files once, for all that is asked of them.
func (a *Audit) Run(s Streams) error {
	if a.Top < 0 {
		return errors.New("--top: can't be negative")
	}
	a.File = distinct(a.File)
	out := &heldBack{w: s.Out}
	s.Out = out
	var readings []reading
	if !a.Replay && !a.Verify {
		readings = append(readings, &summing{Summary: &audit.Summary{}, top: a.Top, s: s})
	}
	c, dir, err := a.folder()
	if err != nil && (len(readings) == 0 || a.Config != "") {
		return err // a sum needs no data_dir
	}
	if a.Verify {
		v, err := a.verifying(c, dir)
		if err != nil {
			return err
		}
		readings = append(readings, v)
	}
	if a.Replay {
		r, err := replaying(dir, s.Out, a.JSON)
		if err != nil {
			return err
		}
		defer r.close()
		readings = append(readings, r)
	}
	readErr := audit.Lines(a.File, s.In, func(l *audit.Line) {
		for _, r := range readings {
			r.line(l)
		}
	})
	status := Exit(0)
	for _, r := range readings {
		r.end()
		if !a.JSON {
			r.print(s.Out)
		}
		if r.wrong() {
			status = 1
		}
	}
	if a.JSON {
		if err := encode(s.Out, asJSON(readings)); err != nil {
			return err
		}
	}
	if out.err != nil {
		return out.err
	}
	if readErr != nil {
		return readErr
	}
	if status != 0 {
		return status
	}
	return nil
}

// distinct leaves out files that are named again: each record of theirs would be there
// twice.
func distinct(files []string) (all []string) {
	for _, file := range files {
		if !slices.ContainsFunc(all, func(other string) bool { return filepath.Clean(other) == filepath.Clean(file) }) {
			all = append(all, file)
		}
	}
	return all
}

// heldBack keeps the first error of writing, for the end.
type heldBack struct {
	w   io.Writer
	err error
}

func (h *heldBack) Write(b []byte) (int, error) {
	n, err := h.w.Write(b)
	if h.err == nil {
		h.err = err
	}
	return n, err
}

// folder returns the configuration and its data_dir.
func (a *Audit) folder() (*config.Config, string, error) {
	c, err := a.load()
	if err != nil {
		return nil, "", err
	}
	dir, err := config.DataDir(c)
	return c, dir, err
}

// verifying checks the chains.
type verifying struct {
	*audit.Verifier
	dir  string
	keep time.Duration
}

func (a *Audit) verifying(c *config.Config, dir string) (*verifying, error) {
	dir = filepath.Join(dir, chainsDir)
	heads, err := audit.Heads(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	v := audit.NewVerifier(heads, a.File)
	v.Guess = a.Config == ""
	return &verifying{v, dir, c.Robots.Keep}, nil
}

func (v *verifying) line(l *audit.Line) { v.Line(l) }

// end looks for the heads of chains that have begun since the first look: the gate may be
// running.
func (v *verifying) end() {
	if heads, err := audit.Heads(v.dir); err == nil {
		v.Later(heads)
	}
	v.End(v.keep)
}

func (v *verifying) wrong() bool { return v.Wrong > 0 }

func (v *verifying) print(w io.Writer) {
	for _, text := range v.Said {
		fmt.Fprintln(w, escape.Printable(text))
	}
	if more := v.Wrong - len(v.Said); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	for _, text := range v.Notes {
		fmt.Fprintln(w, "note: "+escape.Printable(text))
	}
	if v.Lost > 0 {
		fmt.Fprintf(w, "note: %s could not be written at the time\n", plural(v.Lost, "record"))
	}
	what := "none changed, missing or added"
	switch {
	case v.Wrong > 0:
		what = plural(v.Wrong, "fault")
	case v.Records == 0:
		what = "nothing to check"
	}
	fmt.Fprintf(w, "%s in %s: %s\n", plural(v.Records, "record"), plural(v.Chains(), "chain"), what)
}

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

// summing sums up.
type summing struct {
	*audit.Summary
	top  int
	s    Streams
	said int
}

func (t *summing) line(l *audit.Line) {
	t.Line(l)
	const most = 20
	if l.Record != nil {
		return
	}
	if t.said++; t.said <= most {
		t.s.warn("%s: %s", escape.Printable(l.At()), l.Err)
	}
}

func (t *summing) end()        {}
func (t *summing) wrong() bool { return false }

func (t *summing) print(w io.Writer) {
	if t.Requests > 0 {
		fmt.Fprintf(w, "%s to %s UTC\n", t.From.UTC().Format(utc), t.To.UTC().Format(utc))
	}
	fmt.Fprintf(w, "%s: %d allowed, %d denied, %d denied but let through (report mode), %d without a decision\n",
		plural(t.Requests, "request"), t.Allowed, t.Denied, t.Reported, t.Undecided)
	fmt.Fprintf(w, "%s with an error, %d bytes of responses\n", plural(t.Errors, "request"), t.Bytes)
	if t.Lost > 0 {
		fmt.Fprintf(w, "%s could not be written at the time\n", plural(t.Lost, "record"))
	}
	if t.NoRecord > 0 {
		fmt.Fprintf(w, "%s that are no records\n", plural(t.NoRecord, "line"))
	}
	table(w, "by reason", t.Reasons())
	table(w, "by crawler", t.Crawlers())
	hosts, all, about := t.Hosts(t.top)
	title := "by host"
	switch {
	case about:
		title += fmt.Sprintf(" (the first %d; of more than can be counted, so these are estimates)", len(hosts))
	case all > len(hosts):
		title += fmt.Sprintf(" (the first %d of %d)", len(hosts), all)
	}
	table(w, title, hosts)
	table(w, "by error", t.Failures(t.top))
}

// table prints counts by names.
func table(w io.Writer, title string, rows []audit.Named) {
	if len(rows) == 0 {
		return
	}
	const widest = 60
	width := len(title)
	for _, r := range rows {
		width = max(width, min(2+len(escape.Printable(r.Name)), widest))
	}
	fmt.Fprintf(w, "\n%-*s %9s %9s %9s %9s\n", width, title, "requests", "allowed", "denied", "reported")
	for _, r := range rows {
		fmt.Fprintf(w, "%-*s %9d %9d %9d %9d\n", width, "  "+escape.Printable(r.Name), r.Requests, r.Allowed, r.Denied, r.Reported)
	}
}

// list is [] where there is nothing, for programs.
func list(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

// asJSON is what was found, for programs.
func asJSON(readings []reading) any {
	out := map[string]any{}
	for _, r := range readings {
		switch r := r.(type) {
		case *summing:
			hosts, all, about := r.Hosts(r.top)
			out["summary"] = struct {
				*audit.Summary
				Reasons  []audit.Named `json:"reasons"`
				Crawlers []audit.Named `json:"crawlers"`
				Hosts    []audit.Named `json:"hosts"`
				Names    int           `json:"hosts_total"`
				About    bool          `json:"hosts_estimated"`
				Failures []audit.Named `json:"failures"`
			}{r.Summary, r.Reasons(), r.Crawlers(), hosts, all, about, r.Failures(r.top)}
		case *verifying:
			out["verify"] = map[string]any{"records": r.Records, "chains": r.Chains(), "faults": r.Wrong, "said": list(r.Said), "notes": list(r.Notes), "lost": r.Lost}
		case *again:
			counts := map[string]int{}
			for _, o := range replay.Outcomes {
				counts[strings.ReplaceAll(string(o), " ", "_")] = r.counts[o]
			}
			out["replay"] = map[string]any{"counts": counts, "differences": list(r.differences), "invalid": r.noRecord}
		}
	}
	return out
}
