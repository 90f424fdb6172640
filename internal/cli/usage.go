package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/policy"
)

// Usage prints what the content of a URL may be used for.
type Usage struct {
	Asker
	Header []string `placeholder:"'NAME: VALUE'" sep:"none" help:"A header line of the response; may be repeated."`
	HTML   string   `placeholder:"FILE" help:"Read the head of this page; - is standard input."`
	JSON   bool     `help:"Print JSON."`
	Batch  bool     `help:"Read JSON lines from standard input and answer each with one."`
	URL    string   `arg:"" optional:"" name:"URL" help:"The URL."`
}

// Run reads what there is about the URL, and prints the preferences.
func (u *Usage) Run(ctx context.Context, s console.Streams) error {
	if u.Batch {
		return u.batch(s)
	}
	if u.URL == "" {
		return errors.New("which URL? robotsgate usage https://example.com/")
	}
	cfg, crawler, err := u.asked(s)
	if err != nil {
		return err
	}
	var read reading
	if u.local() {
		read, err = u.given(s, cfg, crawler)
	} else {
		read, err = u.fetched(ctx, s, cfg, crawler, u.URL)
	}
	if err != nil {
		return err
	}
	a := read.answer()
	if u.JSON {
		err = console.JSON(s.Out, a)
	} else {
		err = printReport(s.Out, "usage", a)
	}
	return cmp.Or(err, read.Failed)
}

// asked returns the configuration and the crawler to read for. It has no overrides: they are the operator's, not the
// publisher's.
func (a *Asker) asked(s console.Streams) (*gate.Config, *policy.Crawler, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	cfg.Overrides = nil
	crawler, err := a.crawler(gate.Crawlers(cfg))
	return cfg, crawler, err
}

// local reports whether an option gives something to read, so that nothing is fetched.
func (u *Usage) local() bool {
	return u.Robots != "" || len(u.Header) > 0 || u.HTML != ""
}

// given returns the reading of the files and header lines that options name.
func (u *Usage) given(s console.Streams, cfg *gate.Config, crawler *policy.Crawler) (r reading, err error) {
	if u.Robots == "-" && u.HTML == "-" {
		return r, errors.New("- is standard input, which can be only one of --robots and --html: name a file for the other")
	}
	ask := u.Asker
	ask.Robots = cmp.Or(ask.Robots, "none") // a path is enough for a URL
	target, err := ask.target(u.URL)
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.URL, err)
	}
	r.Path, r.Tokens, r.Header = target.Path, crawler.Obeys(u.Agent), http.Header{}
	for _, line := range u.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return r, fmt.Errorf("--header %q: write it as 'Name: value'", line)
		}
		r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	rules := cfg.Robots.Robots
	if u.Robots != "" {
		body, err := readFile(u.Robots, s.In)
		if err != nil {
			return r, err
		}
		if r.Decision = rules.Judge(http.StatusOK, body, target, r.Tokens); !r.Decision.Allow {
			s.Note("%s denies this URL, so it states no preference for it: preferences are about what may be fetched", u.Robots)
		}
	}
	if u.HTML != "" {
		page, err := readFile(u.HTML, s.In)
		if err != nil {
			return r, err
		}
		if err := r.readPage(bytes.NewReader(page), 0); err != nil {
			return r, fmt.Errorf("%s: %w", u.HTML, err)
		}
	}
	return r, nil
}

// batch answers line by line, by the section robots of the configuration.
func (u *Usage) batch(s console.Streams) error {
	if u.URL != "" || u.local() || u.Crawler != "" || u.Agent != "" || len(u.Token) > 0 {
		return errors.New("--batch excludes URL, --agent, --token, --crawler, --robots, --header and --html: with it each line of standard input has all that is needed")
	}
	cfg, err := u.load()
	if err != nil {
		return err
	}
	rules := cfg.Robots.Robots
	rules.Readings = policy.Literal // as check --batch
	return console.Batch(s, func(line []byte) (any, error) { return answerUsage(&rules, line) })
}
