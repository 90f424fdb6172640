package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/policy/robotstag"
)

// Tags prints the robots-tag rules that bind a crawler.
type Tags struct {
	Token  []string `sep:"none" placeholder:"T" help:"The crawler's product token."`
	Header []string `placeholder:"'NAME: VALUE'" sep:"none" help:"A Robots-Tag or X-Robots-Tag header line."`
	HTML   string   `placeholder:"FILE" help:"A page whose head is read; - is standard input."`
	Batch  bool     `help:"Read JSON lines from standard input and answer each with one."`
}

// Run prints the rules, one a line.
func (t *Tags) Run(s console.Streams) error {
	given := len(t.Header) > 0 || t.HTML != ""
	switch {
	case t.Batch && (given || len(t.Token) > 0):
		return errors.New("--batch excludes --header, --html and --token: with it each line of standard input has all that is needed")
	case t.Batch:
		return console.Batch(s, answerTags)
	case !given:
		return errors.New("which tags? robotsgate tags --header 'X-Robots-Tag: noindex', or --html page.html")
	}
	noteTokens(s, t.Token)
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
	return printReport(s.Out, "tags", struct {
		tagsAnswer
		ContentType string
		MaxField    int
	}{a, contentType, robotstag.MaxField})
}
