package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"robotsgate/htmlmeta"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// Usage prints what the content of a URL may be used for.
type Usage struct {
	Configured
	Agent   string   `placeholder:"UA" help:"User-Agent that the crawler sends."`
	Token   []string `placeholder:"T" help:"Product token that the crawler obeys; the first with a group counts."`
	Crawler string   `placeholder:"NAME" help:"The preferences for this crawler of FILE. Without it, for the crawler that --agent alone identifies."`
	Robots  string   `placeholder:"FILE" help:"Read this robots.txt; - is standard input."`
	Header  []string `placeholder:"'NAME: VALUE'" sep:"none" help:"A header line of the response; may be repeated."`
	HTML    string   `placeholder:"FILE" help:"Read the head of this page; - is standard input."`
	TDMRep  string   `name:"tdmrep" placeholder:"FILE" help:"Read this tdmrep.json; - is standard input."`
	JSON    bool     `help:"Print JSON."`
	Batch   bool     `help:"Read JSON lines from standard input and answer each with one."`
	URL     string   `arg:"" optional:"" name:"URL" help:"The URL."`
}

// Run reads what there is about the URL, and prints the preferences.
func (u *Usage) Run(ctx context.Context, s console.Streams) error {
	if u.Batch {
		return u.batch(s)
	}
	if u.URL == "" {
		return errors.New("which URL? robotsgate usage https://example.com/")
	}
	cfg, err := u.load()
	if err != nil {
		return err
	}
	cfg.Overrides = nil // they are the operator's, not the publisher's
	crawler, err := u.asCheck().crawler(gate.Crawlers(cfg))
	if err != nil {
		return err
	}
	var read usageReading
	if u.local() {
		read, err = u.given(s, cfg, crawler)
	} else {
		read, err = u.fetched(ctx, s, cfg, crawler)
	}
	if err != nil {
		return err
	}
	for _, mistake := range read.unread() {
		s.Note("%s", mistake)
	}
	a := read.answer()
	if u.JSON {
		err = console.JSON(s.Out, a)
	} else {
		err = printReport(s.Out, "usage", a)
	}
	return cmp.Or(err, read.failed)
}

// asCheck returns a Check with the same options, to choose the crawler and to parse the URL.
func (u *Usage) asCheck() *Check {
	return &Check{Configured: u.Configured, Agent: u.Agent, Token: u.Token, Crawler: u.Crawler, Robots: u.Robots}
}

// local reports whether an option gives something to read, so that nothing is fetched.
func (u *Usage) local() bool {
	return u.Robots != "" || len(u.Header) > 0 || u.HTML != "" || u.TDMRep != ""
}

// given returns the reading of the files and header lines that options name.
func (u *Usage) given(s console.Streams, cfg *gate.Config, crawler *policy.Crawler) (r usageReading, err error) {
	ins := 0
	for _, file := range []string{u.Robots, u.HTML, u.TDMRep} {
		if file == "-" {
			ins++
		}
	}
	if ins > 1 {
		return r, errors.New("- is standard input, which can be only one of --robots, --html and --tdmrep: name files for the others")
	}
	check := u.asCheck()
	check.Robots = cmp.Or(check.Robots, "none") // a path is enough for a URL
	target, err := check.target(u.URL)
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.URL, err)
	}
	r.path, r.tokens, r.header = target.Path, crawler.Obeys(u.Agent), http.Header{}
	for _, line := range u.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return r, fmt.Errorf("--header %q: write it as 'Name: value'", line)
		}
		r.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	rules := cfg.Robots.Robots
	if u.Robots != "" {
		body, err := readFile(u.Robots, s.In)
		if err != nil {
			return r, err
		}
		if r.decision = rules.Judge(http.StatusOK, body, target, r.tokens); !r.decision.Allow {
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
	if u.TDMRep != "" {
		text, err := readFile(u.TDMRep, s.In)
		if err != nil {
			return r, err
		}
		if r.tdmrep, err = parseTDMRep(text, rules.MaxBytes); err != nil {
			s.Note("%s states nothing: %v", u.TDMRep, err)
		}
	}
	return r, nil
}

// parseTDMRep reads a tdmrep.json. A longer one than the limit is an error.
func parseTDMRep(text []byte, limit int) (*usage.TDMFile, error) {
	if len(text) > limit {
		return nil, fmt.Errorf("it is longer than robots.max_bytes, %d bytes", limit)
	}
	return usage.ParseTDMRep(text)
}

// A usageReading is what there is to read about a URL, for one crawler.
type usageReading struct {
	path     string
	tokens   []string        // of the crawler
	decision policy.Decision // by robots.txt; without one if Robots is nil
	header   http.Header     // of the response; nil: there is none
	status   int             // of the response; 0: there is none
	head     htmlmeta.Result // of the page
	skipped  string          // why the page was not read
	tdmrep   *usage.TDMFile  // nil: that of the decision
	failed   error           // why not all could be read; it does not prevent an answer
}

// readPage reads the head of the page that came with r.header, as the gate does. Without a
// Content-Type it is HTML. MaxBytes bounds the bytes read; 0: the default.
func (r *usageReading) readPage(page io.Reader, maxBytes int) (err error) {
	contentType := ""
	if lines := r.header["Content-Type"]; len(lines) > 0 {
		contentType = htmlmeta.ContentType(lines)
	}
	if contentType != "" && !htmlmeta.MayBePage(contentType) {
		r.skipped = "type"
		return nil
	}
	r.head, err = htmlmeta.Scan(page, htmlmeta.Options{
		ContentType: contentType, ContentEncoding: strings.Join(r.header["Content-Encoding"], ","), MaxBytes: maxBytes,
	})
	if r.head.Why == "type" {
		r.head, r.skipped = htmlmeta.Result{}, "type"
	}
	return err
}

// A usageAnswer is what commands print.
type usageAnswer struct {
	Usage    map[string]string `json:"usage"`
	Detail   []usage.Detail    `json:"detail"`
	Licenses []string          `json:"licenses"`
	// Skipped and Partial say why a page, or the end of its head, was not read, in the words of
	// Robots-Gate-Meta.
	Skipped string `json:"skipped,omitempty"`
	Partial string `json:"partial,omitempty"`

	Links    []usage.License `json:"-"`
	Reserved []string        `json:"-"` // purposes
	Failed   bool            `json:"-"` // robots.txt or the page could not be fetched
}

// answer returns what is in force.
func (r *usageReading) answer() usageAnswer {
	in := usage.Input{Path: r.path}
	if r.decision.Robots != nil {
		in = r.decision.UsageInput(r.path)
	}
	in.Header, in.Metas, in.Links, in.TDMRep = r.header, r.head.Metas, r.head.Links, cmp.Or(r.tdmrep, in.TDMRep)
	all := []robotstag.Tags{robotstag.ParseHeader(r.header["Robots-Tag"], r.header["X-Robots-Tag"])}
	for _, m := range r.head.Metas {
		all = append(all, robotstag.ParseMeta(m.Name, m.Content))
	}
	in.Tags = robotstag.Union(all...).For(r.tokens...)
	stated := usage.Read(&in)
	a := usageAnswer{
		Usage: stated.Values(), Links: stated.Licenses, Skipped: r.skipped, Partial: r.head.Why,
		Detail: append([]usage.Detail{}, stated.Details()...), Licenses: append([]string{}, stated.URLs()...), // [] in place of null
		Failed: r.failed != nil,
	}
	for _, p := range usage.Purposes {
		if _, _, reserved := stated.Reserved([]usage.Purpose{p}); reserved {
			a.Reserved = append(a.Reserved, string(p))
		}
	}
	return a
}

// A usageQuestion is one line of usage --batch. Members that are missing or empty stand for nothing,
// except that an empty page is a page.
type usageQuestion struct {
	URL       *string    `json:"url"`
	Token     string     `json:"product_token"`
	Agent     string     `json:"user_agent"`
	Robots    *string    `json:"robots"`
	RobotsB64 []byte     `json:"robots_b64"`
	Headers   [][]string `json:"headers"` // of the response: pairs of name and value
	HTML      *string    `json:"html"`
	HTMLB64   []byte     `json:"html_b64"`
	TDMRep    *string    `json:"tdmrep"`
}

// batch answers line by line, by the section robots of the configuration.
func (u *Usage) batch(s console.Streams) error {
	if u.URL != "" || u.local() || u.Crawler != "" || u.Agent != "" || len(u.Token) > 0 {
		return errors.New("--batch excludes URL, --agent, --token, --crawler, --robots, --header, --html and --tdmrep: with it each line of standard input has all that is needed")
	}
	cfg, err := u.load()
	if err != nil {
		return err
	}
	rules := cfg.Robots.Robots
	rules.Readings = policy.Literal // as check --batch
	return console.Batch(s, func(line []byte) (any, error) { return usageLineOf(&rules, line) })
}

func usageLineOf(rules *policy.Robots, line []byte) (any, error) {
	var q usageQuestion
	if err := console.Question(line, &q); err != nil {
		return nil, err
	}
	if q.URL == nil {
		return nil, errors.New(`"url" is missing`)
	}
	r := usageReading{path: robotstxt.PathOf(*q.URL), header: http.Header{}}
	for i, pair := range q.Headers {
		if len(pair) != 2 {
			return nil, fmt.Errorf(`"headers" has %d texts in place %d, not a name and a value`, len(pair), i+1)
		}
		r.header.Add(strings.TrimSpace(pair[0]), strings.Trim(pair[1], " \t"))
	}
	if q.Token != "" {
		r.tokens = []string{q.Token}
	} else if token := policy.ProductToken(q.Agent); token != "" {
		r.tokens = []string{token}
	}
	body := q.RobotsB64 // has precedence over text beside it
	if len(body) == 0 && q.Robots != nil {
		body = []byte(*q.Robots)
	}
	if body != nil {
		r.decision = rules.Judge(http.StatusOK, body, canonical.Target{Path: r.path}, r.tokens)
	}
	page := q.HTMLB64
	if len(page) == 0 && q.HTML != nil {
		page = []byte(*q.HTML)
	}
	if page != nil {
		if err := r.readPage(bytes.NewReader(page), 0); err != nil {
			return nil, err
		}
	}
	if q.TDMRep != nil {
		r.tdmrep, _ = parseTDMRep([]byte(*q.TDMRep), rules.MaxBytes) // after an error it states nothing
	}
	return r.answer(), nil
}
