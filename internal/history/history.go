// Package history prints the answers of an origin for robots.txt that a gate keeps, and compares their texts.
package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/logtext"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// Options are those of the command.
type Options struct {
	Diff   bool   `help:"Print a unified diff of each text against the one before it."`
	Origin string `arg:"" name:"ORIGIN" help:"Such as https://example.com; a host alone stands for all its origins."`
}

// Print prints what an archive, in the folder dir, keeps of an origin. Rules classify the answers.
func Print(w io.Writer, archive snapshot.Archive, dir string, rules *snapshot.Settings, o Options) error {
	target, err := o.target()
	if err != nil {
		return err
	}
	host, _ := canonical.SplitPort(target.Host)
	kept, err := archive.HostOrigins(host)
	if err != nil {
		return err
	}
	origins := slices.DeleteFunc(slices.Clone(kept), func(origin string) bool { return !o.names(target, origin) })
	if len(origins) == 0 && len(kept) > 0 {
		return fmt.Errorf("nothing is kept of %s; of this host there is %s", logtext.Printable(o.Origin), strings.Join(kept, ", "))
	}
	if len(origins) == 0 {
		return fmt.Errorf("nothing is kept of %s in %s: no request has led there, or it was too long ago, or robots.disk_bytes has no room for it", logtext.Printable(o.Origin), dir)
	}
	out := bufio.NewWriter(w) // keeps its first error
	defer out.Flush()         // after an error
	for i, origin := range origins {
		answers, err := archive.History(origin)
		if err != nil {
			return err
		}
		all := rows(origin, answers, archive, rules, o.Diff)
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s\n  from (UTC)           to                   for          state       status    bytes  sha256, or why not\n", origin)
		for _, r := range all {
			fmt.Fprintln(out, r)
		}
		if o.Diff {
			printDiffs(out, all)
		}
	}
	return out.Flush()
}

// target parses the argument ORIGIN.
func (o *Options) target() (canonical.Target, error) {
	url := o.Origin
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	t, err := canonical.ParseURL(url)
	if err != nil {
		return t, fmt.Errorf("ORIGIN: %w", err)
	}
	return t, nil
}

// names reports whether the argument, with the target t, names an origin of its host: without a
// scheme it means both, and without a scheme and port all ports.
func (o *Options) names(t canonical.Target, origin string) bool {
	authority, _, _ := strings.Cut(o.Origin, "/")
	_, port := canonical.SplitPort(authority)
	switch {
	case strings.Contains(o.Origin, "://"):
		return origin == t.Origin()
	case port == "":
		return true
	}
	scheme, _, _ := strings.Cut(origin, "://")
	same, err := canonical.ParseURL(scheme + "://" + authority)
	return err == nil && origin == same.Origin()
}

// A row is an answer in the output.
type row struct {
	From   time.Time
	To     time.Time
	Asker  string         // see [snapshot.Scope]
	State  snapshot.State // rules, unavailable or unreachable
	Status int
	Bytes  *int
	SHA256 string
	Error  string
	By     string   // the gate of the fleet that fetched it; empty: this one
	Diff   []string // from the text before
	More   int      // lines that are left out

	text   string // "" if Bytes is nil
	before *row   // with the text before, if Diff was asked for and it is another
}

// rows returns the answers, the newest first. The archive has the oldest first.
func rows(origin string, answers []snapshot.Answer, archive snapshot.Archive, rules *snapshot.Settings, diffs bool) []*row {
	all, last := []*row{}, map[string]*row{} // with a text, by asker
	for _, a := range answers {
		r := newRow(origin, a, archive, rules)
		all = append(all, r)
		if r.SHA256 == "" {
			continue
		}
		if before := last[r.Asker]; diffs && before != nil && before.SHA256 != r.SHA256 {
			r.before = before
			if before.Bytes != nil && r.Bytes != nil {
				r.Diff, r.More = Diff(before.version(), before.text, r.version(), r.text)
			}
			before.text = "" // a history may be long
		}
		last[r.Asker] = r
	}
	slices.Reverse(all)
	return all
}

func newRow(origin string, a snapshot.Answer, archive snapshot.Archive, rules *snapshot.Settings) *row {
	s := a.Snapshot
	r := &row{From: a.From.UTC(), To: a.To.UTC(), Asker: a.Asker, State: rules.Classify(s), Status: s.Status, SHA256: s.SHA256, Error: s.Error, By: s.By}
	if s.Looped {
		r.Error = "its redirects have no end"
	}
	if s.SHA256 == "" {
		return r
	}
	if s.HTML {
		r.Error = "an HTML page in place of the file"
	}
	if r.State == snapshot.Fresh {
		r.State = "rules" // which may be fresh or stale
	}
	text, err := archive.Body(origin, s.SHA256)
	switch {
	case err == nil:
		r.Bytes, r.text = new(len(text)), text
	case errors.Is(err, fs.ErrNotExist):
		r.Error = "the file is not kept any more"
	default:
		r.Error = "the file: " + err.Error()
	}
	return r
}

// version names the text in a diff.
func (r *row) version() string { return r.SHA256[:min(12, len(r.SHA256))] + " " + console.UTC(r.From) }

// String returns the row for people.
func (r *row) String() string {
	to, status, bytes := "now", "-", "-"
	if !r.To.IsZero() {
		to = console.UTC(r.To)
	}
	if r.Status != 0 {
		status = fmt.Sprint(r.Status)
	}
	if r.Bytes != nil {
		bytes = fmt.Sprint(*r.Bytes)
	}
	what := strings.TrimSpace(r.SHA256 + " " + logtext.Printable(r.Error))
	if r.By != "" {
		what += " (fetched by gate " + logtext.Printable(r.By) + ")"
	}
	line := fmt.Sprintf("  %-19s  %-19s  %-12s %-11s %6s %8s  %s", console.UTC(r.From), to, logtext.Printable(r.Asker), r.State, status, bytes, what)
	return strings.TrimRight(line, " ")
}

// printDiffs prints what has changed from each text to the next.
func printDiffs(w io.Writer, all []*row) {
	same := true
	for _, r := range all {
		if r.before == nil {
			continue
		}
		same = false
		fmt.Fprintf(w, "\n%s UTC, for %s\n", console.UTC(r.From), logtext.Printable(r.Asker))
		if r.Bytes == nil || r.before.Bytes == nil {
			fmt.Fprintf(w, "%s to %s: a file is not kept any more, or has been changed\n", r.before.SHA256, r.SHA256)
		}
		for _, line := range r.Diff {
			fmt.Fprintln(w, line)
		}
		if r.More > 0 {
			fmt.Fprintf(w, "and %s more\n", console.Plural(r.More, "line"))
		}
	}
	if same {
		fmt.Fprintln(w, "\nNo text differs from the one before it.")
	}
}
