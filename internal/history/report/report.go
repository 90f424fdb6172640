// Package report prints how the robots.txt and the tdmrep.json of an origin have changed, from the answers that a gate
// keeps in its data_dir. Package history compares two versions.
package report

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/escape"
	"robotsgate/internal/gate"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// Options are those of the command.
type Options struct {
	Diff   bool     `help:"Print what has changed from each file to the next, and which decisions and usage preferences differ."`
	Token  []string `sep:"none" placeholder:"T" help:"Compare decisions for a crawler that obeys this product token; the first with a group counts."`
	Agent  string   `placeholder:"UA" help:"Compare decisions for a crawler that sends this User-Agent."`
	URL    []string `placeholder:"URL" sep:"none" help:"Compare decisions about this URL, too."`
	Log    []string `placeholder:"FILE" sep:"none" help:"Compare decisions about the origin's paths in this audit log, too."`
	JSON   bool     `help:"Print JSON."`
	Origin string   `arg:"" name:"ORIGIN" help:"Such as https://example.com; a host alone stands for all its origins."`
}

// Print reads what is kept of an origin, and prints it.
func Print(s console.Streams, c *gate.Config, h Options) error {
	target, err := h.target()
	if err != nil {
		return err
	}
	archive, dir, err := datadir.Snapshots(c)
	if err != nil {
		return err
	}
	defer archive.Close()
	host, _ := canonical.SplitPort(target.Host)
	kept, err := archive.HostOrigins(host)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(s.Out) // keeps its first error
	defer out.Flush()             // after an error
	s.Out = out
	found := false
	for _, origin := range kept {
		if !h.names(target, origin) {
			continue
		}
		answers, err := archive.History(origin)
		if err != nil {
			return err
		}
		tdmrep, err := archive.TDMRepHistory(origin)
		if err != nil {
			return err
		}
		p := &originHistory{Options: &h, origin: origin, answers: answers, tdmrep: tdmrep, archive: archive, config: c, rules: c.Robots.Settings}
		if found && !h.JSON {
			fmt.Fprintln(s.Out)
		}
		found = true
		if err := p.print(s); err != nil {
			return err
		}
	}
	if !found && len(kept) > 0 {
		return fmt.Errorf("nothing is kept of %s; of this host there is %s", escape.Printable(h.Origin), strings.Join(kept, ", "))
	}
	if !found {
		return fmt.Errorf("nothing is kept of %s in %s: no request has led there, or it was too long ago, or robots.disk_bytes has no room for it", escape.Printable(h.Origin), dir)
	}
	return out.Flush()
}

// target parses the argument ORIGIN.
func (h *Options) target() (canonical.Target, error) {
	url := h.Origin
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
func (h *Options) names(t canonical.Target, origin string) bool {
	authority, _, _ := strings.Cut(h.Origin, "/")
	_, port := canonical.SplitPort(authority)
	switch {
	case strings.Contains(h.Origin, "://"):
		return origin == t.Origin()
	case port == "":
		return true
	}
	scheme, _, _ := strings.Cut(origin, "://")
	same, err := canonical.ParseURL(scheme + "://" + authority)
	return err == nil && origin == same.Origin()
}

// An originHistory is the history of one origin.
type originHistory struct {
	*Options
	origin  string
	answers []snapshot.Answer
	tdmrep  []snapshot.Answer // to requests for tdmrep.json
	archive snapshot.Archive
	config  *gate.Config
	rules   snapshot.Settings
}

// An answerRow is an answer in the output.
type answerRow struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
	clients
	State  snapshot.State `json:"state"` // stateRules, stateFile, unavailable or unreachable
	Status int            `json:"status,omitempty"`
	Bytes  *int           `json:"bytes,omitempty"`
	SHA256 string         `json:"sha256,omitempty"`
	Error  string         `json:"error,omitempty"`
	By     string         `json:"by,omitempty"` // the gate of the fleet that fetched it; empty: this one
}

// clients are those to which an answer was given.
type clients struct {
	Asker string `json:"asker"` // see [snapshot.Scope]
}

func (c clients) String() string { return escape.Printable(c.Asker) }

func (p *originHistory) row(a snapshot.Answer, rules *snapshot.Settings) answerRow {
	s := a.Snapshot
	r := answerRow{From: a.From.UTC(), To: a.To.UTC(), clients: clients{a.Asker}, State: rules.Classify(s), Status: s.Status, SHA256: s.SHA256, Error: s.Error, By: s.By}
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
		r.State = stateRules
	}
	body, err := p.archive.Body(s.SHA256)
	switch {
	case err == nil:
		r.Bytes = new(len(body))
	case errors.Is(err, fs.ErrNotExist):
		r.Error = "the file is not kept any more"
	default:
		r.Error = "the file: " + err.Error()
	}
	return r
}

func (p *originHistory) print(s console.Streams) error {
	rows := []answerRow{}
	for _, a := range p.answers {
		rows = append(rows, p.row(a, &p.rules))
	}
	report := historyReport{Changes: []changeRow{}, History: rows, TDMRep: p.tdmrepRows(), Origin: p.origin, Diff: p.Diff}
	if p.Diff {
		paths, err := p.paths(s)
		if err != nil {
			return err
		}
		report.Changes, report.TDMRepChanges = p.changes(paths), p.tdmrepChanges(paths)
	}
	if p.JSON {
		return console.JSON(s.Out, report)
	}
	return templates.ExecuteTemplate(s.Out, "report.txt", report)
}

//go:embed report.txt
var files embed.FS

var templates = console.Templates(files, "report.txt", nil)

// A historyReport is what is printed of an origin.
type historyReport struct {
	Changes []changeRow `json:"changes"`
	History []answerRow `json:"history"`
	// TDMRep and TDMRepChanges are those of tdmrep.json; nil if there are none.
	TDMRep        []answerRow `json:"tdmrep,omitempty"`
	TDMRepChanges []changeRow `json:"tdmrep_changes,omitempty"`
	Origin        string      `json:"origin"`
	Diff          bool        `json:"-"` // changes were asked for
}

// String returns the row for people.
func (r answerRow) String() string {
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
	what := strings.TrimSpace(r.SHA256 + " " + escape.Printable(r.Error))
	if r.By != "" {
		what += " (fetched by gate " + escape.Printable(r.By) + ")"
	}
	line := fmt.Sprintf("  %-19s  %-19s  %-12s %-11s %6s %8s  %s", console.UTC(r.From), to, r.clients, r.State, status, bytes, what)
	return strings.TrimRight(line, " ")
}
