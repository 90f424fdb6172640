package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/internal/escape"
	"robotsgate/internal/field"
	"robotsgate/internal/gate"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt/lint"
	"robotsgate/policy/snapshot"
)

// Lint reports lines of a robots.txt that do not do what they seem to, or corrects them.
type Lint struct {
	Configured
	All    bool   `help:"Report matters of taste too, such as a * at the end of a pattern."`
	Fix    bool   `xor:"form" help:"Print the file with the corrections that change no decision and no delay."`
	JSON   bool   `xor:"form" help:"Print JSON."`
	Source string `arg:"" name:"FILE|URL" help:"The robots.txt; - is standard input, and an origin such as https://example.com stands for its robots.txt."`
}

// Run reports the findings, one a line, or prints the corrected file.
func (l *Lint) Run(ctx context.Context, s console.Streams) error {
	cfg, err := l.load()
	if err != nil {
		return err
	}
	name, data := l.Source, []byte(nil)
	if isURL(l.Source) {
		name, data, err = l.fetch(ctx, s, cfg)
	} else {
		data, err = readFile(l.Source, s.In)
	}
	if err != nil {
		return err
	}
	if l.Fix {
		return l.fix(s, data)
	}
	findings := l.check(data)
	if l.JSON {
		return l.print(s, name, findings)
	}
	out := bufio.NewWriter(s.Out)
	for _, f := range findings {
		fmt.Fprintf(out, "%s:%d: %s\n", escape.Printable(name), f.Line, f.Text)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if len(findings) > 0 {
		return console.Exit(1)
	}
	return nil
}

// check returns the findings to report.
func (l *Lint) check(data []byte) []lint.Finding {
	findings := lint.Check(data, 0)
	if l.All {
		return findings
	}
	return slices.DeleteFunc(findings, func(f lint.Finding) bool { return f.Rank == lint.Taste })
}

// fix prints the corrected file.
func (l *Lint) fix(s console.Streams, data []byte) error {
	fixed := lint.Fix(data)
	if _, err := s.Out.Write(fixed); err != nil {
		return err
	}
	if left := len(l.check(fixed)); left > 0 {
		fmt.Fprintf(s.Err, "robotsgate: %s left to report, see lint without --fix\n", console.Plural(left, "finding"))
		return console.Exit(1)
	}
	return nil
}

// print prints the findings as JSON.
func (l *Lint) print(s console.Streams, name string, findings []lint.Finding) error {
	type row struct {
		Line int    `json:"line,omitempty"` // 0: the finding is about the whole
		Text string `json:"text"`
		Rank string `json:"rank"`
	}
	rows := []row{}
	for _, f := range findings {
		rows = append(rows, row{f.Line, f.Text, f.Rank.String()})
	}
	err := console.JSON(s.Out, struct {
		Source   string `json:"source"`
		Findings []row  `json:"findings"`
	}{name, rows})
	if err == nil && len(rows) > 0 {
		return console.Exit(1)
	}
	return err
}

func isURL(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// fetch returns the file and its URL after redirects.
func (l *Lint) fetch(ctx context.Context, s console.Streams, cfg *gate.Config) (name string, data []byte, err error) {
	t, err := canonical.ParseURL(l.Source)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", l.Source, err)
	}
	if t.Path == "/" {
		t.Path = "/robots.txt"
	}
	// Lint reports lines beyond the limit of crawlers, so they must be read.
	cfg.Robots.MaxBytes = max(cfg.Robots.MaxBytes, 4<<20)
	upstream, err := unguarded(cfg)
	if err != nil {
		return "", nil, err
	}
	defer upstream.Close()
	rules := cfg.Robots.Robots
	rules.HideRedirects = cfg.Egress.ParentHasLogin()
	res, err := rules.Fetch(ctx, upstream, t.String(), cmp.Or(rules.UserAgent, gate.UserAgent(version())))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", t, explained(t, err))
	}
	f := res.Snapshot
	why := cmp.Or(escape.Printable(f.Error), fmt.Sprintf("the answer has status %d", f.Status))
	if f.Looped {
		why = fmt.Sprintf("it redirects more than %d times", rules.MaxRedirects)
	}
	switch res.State {
	case snapshot.Fresh:
		if l.Fix && res.File.Truncated() {
			return "", nil, fmt.Errorf("%s: longer than %s, so what could be printed is not the whole file; correct the file itself", escape.Printable(f.URL), field.Size(cfg.Robots.MaxBytes))
		}
		return f.URL, []byte(res.File.Body()), nil
	case snapshot.Unavailable:
		text := fmt.Sprintf("there is no robots.txt, since %s, so crawlers may fetch everything (RFC 9309, 2.3.1.3)", why)
		if l.JSON {
			return "", nil, l.print(s, t.String(), []lint.Finding{{Text: text}})
		}
		text = escape.Printable(t.String()) + ": " + text
		if l.Fix {
			fmt.Fprintln(s.Err, "robotsgate:", text) // standard output has the file, and there is none
		} else {
			fmt.Fprintln(s.Out, text)
		}
		return "", nil, console.Exit(1)
	}
	return "", nil, fmt.Errorf("%s: unreachable, so crawlers may fetch nothing (RFC 9309, 2.3.1.4): %s", escape.Printable(t.String()), why)
}
