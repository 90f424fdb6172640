package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/policy/robotstag"
)

// Tags prints the robots-tag rules that bind a crawler.
type Tags struct {
	Configured
	Agent  string   `placeholder:"UA" help:"User-Agent that the crawler sends, to fetch URL."`
	Token  []string `sep:"none" placeholder:"T" help:"The crawler's product token."`
	Header []string `placeholder:"'NAME: VALUE'" sep:"none" help:"A Robots-Tag or X-Robots-Tag header line."`
	HTML   string   `placeholder:"FILE" help:"A page whose head is read; - is standard input."`
	Batch  bool     `help:"Read JSON lines from standard input and answer each with one."`
	URL    string   `arg:"" optional:"" name:"URL" help:"Fetch this page, if its robots.txt allows it."`
}

// Run prints the rules, one a line.
func (t *Tags) Run(ctx context.Context, s console.Streams) error {
	given := len(t.Header) > 0 || t.HTML != ""
	switch {
	case t.Batch && (given || t.URL != "" || t.Agent != "" || len(t.Token) > 0):
		return errors.New("--batch excludes URL, --agent, --header, --html and --token: with it each line of standard input has all that is needed")
	case t.Batch:
		return console.Batch(s, answerTags)
	case given && t.URL != "":
		return errors.New("URL excludes --header and --html, which are in place of a response")
	case t.URL != "":
		return t.fetch(ctx, s)
	case !given:
		return errors.New("which tags? robotsgate tags https://example.com/, or --header 'X-Robots-Tag: noindex', or --html page.html")
	}
	h := http.Header{}
	for _, line := range t.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("--header %q: write it as 'Name: value'", line)
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	var page []byte
	if t.HTML != "" {
		var err error
		if page, err = readFile(t.HTML, s.In); err != nil {
			return err
		}
	}
	contentType := h.Get("Content-Type") // of the page
	a, err := tagsOf(robotstag.ParseHeader(h["Robots-Tag"], h["X-Robots-Tag"]), page, contentType, t.Token)
	if err != nil {
		return fmt.Errorf("%s: %w", t.HTML, err)
	}
	return printTags(s, a, contentType)
}

// fetch prints the rules of a page that it fetches, as usage does.
func (t *Tags) fetch(ctx context.Context, s console.Streams) error {
	ask := Asker{Configured: t.Configured, Agent: t.Agent, Token: t.Token}
	cfg, crawler, err := ask.asked(s)
	if err != nil {
		return err
	}
	r, err := ask.fetched(ctx, s, cfg, crawler, t.URL)
	if err := cmp.Or(err, r.Failed); err != nil {
		return err // what was not fetched may have rules
	}
	a := r.rules(robotstag.ParseHeader(r.Header["Robots-Tag"], r.Header["X-Robots-Tag"]))
	return printTags(s, a, r.Header.Get("Content-Type"))
}

func printTags(s console.Streams, a tagsAnswer, contentType string) error {
	return printReport(s.Out, "tags", struct {
		tagsAnswer
		ContentType string
		MaxField    int
	}{a, contentType, robotstag.MaxField})
}
