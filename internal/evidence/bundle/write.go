package bundle

import (
	"archive/zip"
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"

	"golang.org/x/mod/sumdb/note"

	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
	"robotsgate/internal/replay"
	"robotsgate/policy"
)

// Options say what a bundle is made of, beside the lines of logs.
type Options struct {
	Title     string
	Selection []string // what the options select, in words; empty: everything
	Program   string   // the version that makes the bundle
	Made      time.Time
	Logs      []evidence.Report // that the verifier has found
	Keys      *evidence.Keys
	KeyTexts  []string // the verifier keys that Keys are of
	Evidence  replay.Evidence
	Parse     func(configuration []byte) (*policy.Config, error)
	Progress  func() // is called for each entry; nil: not at all
}

// Made is what a bundle has.
type Made struct {
	Entries   int
	Uncovered int // selected entries that are left out, since no checkpoint covers them
	Logs      []LogSummary
	Outcomes  map[replay.Outcome]int
	Examples  map[replay.Outcome]string // the first entry that is not decided as recorded
}

// A LogSummary is what a bundle says about a log.
type LogSummary struct {
	*logPart
	Cosigned []string // witnesses of the checkpoint, verified ones first
	Number   int      // of the file of its checkpoint
}

// Write writes the bundle. It returns ErrUncovered if no checkpoint covers any of the entries, or if there is none.
func (c *Collector) Write(w io.Writer, o Options) (*Made, error) {
	m := &Made{Uncovered: c.cover(o.Logs), Outcomes: map[replay.Outcome]int{}, Examples: map[replay.Outcome]string{}}
	prove, err := c.prove()
	if err != nil {
		return nil, err
	}
	u, report := newUsed(o.Evidence), newReport()
	replayer := replay.New(u, o.Parse)
	proofs, err := os.CreateTemp(c.dir, "proofs-*")
	if err != nil {
		return nil, err
	}
	defer proofs.Close()
	proofLines := bufio.NewWriterSize(proofs, 1<<20) // keeps its first error
	err = c.each(func(n int, p pick, text []byte) error {
		hashes, err := prove(p, text)
		if err != nil { // the log went on from a checkpoint before it, when its gate was killed
			c.leaveOut(n)
			m.Uncovered++
			return nil
		}
		r, err := parseEntry(text)
		if err != nil {
			return err
		}
		line := proof{p.index, c.order[p.log].Name, hashes}
		_, _ = proofLines.Write(line.appendTo(nil))
		if m.Entries++; o.Progress != nil {
			o.Progress()
		}
		u.entry(r)
		outcome, why := replayer.Replay(r)
		m.Outcomes[outcome]++
		if outcome != replay.Same && outcome != replay.NoDecision && m.Examples[outcome] == "" {
			m.Examples[outcome] = escape.Printable(r.ID + ": " + why)
		}
		report.entry(r, m.Entries)
		return nil
	})
	switch err := cmp.Or(err, proofLines.Flush()); {
	case err != nil:
		return nil, err
	case m.Entries == 0:
		return nil, ErrUncovered
	}
	m.Logs = c.summaries(o.Keys)
	if err := report.finish(u, m, &o); err != nil {
		return nil, err
	}
	z := &writer{zip: zip.NewWriter(w), made: o.Made}
	z.member(readmeName, func(w io.Writer) error { return readme.Execute(w, report) })
	z.member(reportName, func(w io.Writer) error { return reportPage.Execute(w, report) })
	z.member(recordsName, func(w io.Writer) error {
		return c.each(func(_ int, _ pick, text []byte) error { return writeLine(w, text) })
	})
	z.member(proofsName, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(proofs, 0, math.MaxInt64))
		return err
	})
	for _, l := range m.Logs {
		z.read(fmt.Sprintf("%s%d.txt", checkpointsDir, l.Number), func() ([]byte, error) { return []byte(l.Best.Note), nil })
	}
	z.member(answersName, func(w io.Writer) error {
		count, of := 0, map[string]int{} // by URL
		return u.answers(func(a answer) error {
			count++
			if of[a.URL]++; count > maxAnswerCount || of[a.URL] > maxAnswersOf { // check would refuse the bundle
				return tooLarge("more than %d answers of sites, or more than %d about %s", maxAnswerCount, maxAnswersOf, a.URL)
			}
			return json.NewEncoder(w).Encode(a)
		})
	})
	for _, digest := range slices.Sorted(maps.Keys(u.bodies)) {
		z.read(robotsDir+digest, func() ([]byte, error) {
			body, err := o.Evidence.Body(digest)
			return []byte(body), err
		})
	}
	for _, digest := range slices.Sorted(maps.Keys(u.configurations)) {
		z.read(configurationsDir+digest, func() ([]byte, error) { return o.Evidence.Configuration(digest) })
	}
	if z.err != nil {
		return nil, z.err
	}
	return m, z.zip.Close()
}

// leaveOut takes back the selected entry n.
func (c *Collector) leaveOut(n int) {
	p := &c.picks[n]
	c.order[p.log].Selected--
	p.index = -1
}

// summaries returns the logs of which entries are selected.
func (c *Collector) summaries(keys *evidence.Keys) (all []LogSummary) {
	for _, l := range c.order {
		if l.Selected == 0 {
			continue
		}
		s := LogSummary{logPart: l, Number: len(all) + 1}
		if _, n, err := keys.Open([]byte(l.Best.Note)); err == nil {
			s.Cosigned = cosigners(l.Name, n)
		}
		all = append(all, s)
	}
	return all
}

// cosigners returns the names in a note's signatures, but for that of its log. Of those after the verified ones nothing
// is known.
func cosigners(log string, n *note.Note) (names []string) {
	for _, s := range slices.Concat(n.Sigs, n.UnverifiedSigs) {
		if s.Name != log && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

func writeLine(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

// A writer writes the members of a zip file within the bounds of a bundle.
type writer struct {
	zip     *zip.Writer
	made    time.Time
	members int
	total   int64
	err     error // the first
}

func (z *writer) member(name string, write func(io.Writer) error) {
	if z.err != nil {
		return
	}
	if z.members++; z.members > maxMembers {
		z.err = tooLarge("more than %d files", maxMembers)
		return
	}
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: z.made})
	if err == nil {
		b := &bounded{w: w, name: name, left: min(limitOf(name), maxTotal-z.total)}
		before := b.left
		err = write(b)
		z.total += before - b.left
	}
	z.err = err
}

func (z *writer) read(name string, read func() ([]byte, error)) {
	z.member(name, func(w io.Writer) error {
		text, err := read()
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
}

// A bounded writer fails behind a number of bytes.
type bounded struct {
	w    io.Writer
	name string
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, tooLarge("%s has more than %d MiB, or all files together more than %d", b.name, limitOf(b.name)>>20, maxTotal>>20)
	}
	return b.w.Write(p)
}

//go:embed readme.txt
var readmeText string

var readme = template.Must(template.New("readme").Funcs(template.FuncMap{"printable": escape.Printable, "utc": utc, "join": strings.Join}).Parse(readmeText))

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
