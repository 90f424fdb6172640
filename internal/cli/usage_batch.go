package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"robotsgate/htmlmeta"
	"robotsgate/internal/console"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// parseTDMRep reads a tdmrep.json. A longer one than the limit is an error.
func parseTDMRep(text []byte, limit int) (*usage.TDMFile, error) {
	if len(text) > limit {
		return nil, fmt.Errorf("it is longer than robots.max_bytes, %d bytes", limit)
	}
	return usage.ParseTDMRep(text)
}

// A reading is what there is to read about a URL, for one crawler.
type reading struct {
	Path     string
	Tokens   []string         // of the crawler
	Decision *policy.Decision // by robots.txt; nil: there is none
	Header   http.Header      // of the response; nil: there is none
	Status   int              // of the response; 0: there is none
	Head     htmlmeta.Result  // of the page
	Skipped  string           // why the page was not read
	TDMRep   *usage.TDMFile   // nil: that of the decision
	Failed   error            // why not all could be read; it does not prevent an answer
}

// readPage reads the head of the page that came with r.Header, as the gate does. Without a
// Content-Type it is HTML. MaxBytes bounds the bytes read; 0: the default.
func (r *reading) readPage(page io.Reader, maxBytes int) (err error) {
	contentType := ""
	if lines := r.Header["Content-Type"]; len(lines) > 0 {
		contentType = htmlmeta.ContentType(lines)
	}
	if contentType != "" && !htmlmeta.MayBePage(contentType) {
		r.Skipped = "type"
		return nil
	}
	r.Head, err = htmlmeta.Scan(page, htmlmeta.Options{
		ContentType: contentType, ContentEncoding: strings.Join(r.Header["Content-Encoding"], ","), MaxBytes: maxBytes,
	})
	if r.Head.Why == "type" {
		r.Head, r.Skipped = htmlmeta.Result{}, "type"
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
func (r *reading) answer() usageAnswer {
	in := usage.Input{Path: r.Path}
	if r.Decision != nil {
		in = r.Decision.UsageInput(r.Path)
	}
	in.Header, in.Metas, in.Links, in.TDMRep = r.Header, r.Head.Metas, r.Head.Links, cmp.Or(r.TDMRep, in.TDMRep)
	in.Tags = r.withMetas(robotstag.ParseHeader(r.Header["Robots-Tag"], r.Header["X-Robots-Tag"])).For(r.Tokens...)
	stated := usage.Read(&in)
	a := usageAnswer{
		Usage: stated.Values(), Links: stated.Licenses, Skipped: r.Skipped, Partial: r.Head.Why,
		Detail: append([]usage.Detail{}, stated.Details()...), Licenses: append([]string{}, stated.URLs()...), // [] in place of null
		Failed: r.Failed != nil,
	}
	for _, p := range usage.Purposes {
		if _, _, reserved := stated.Reserved([]usage.Purpose{p}, ""); reserved {
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

// answerUsage answers a question of usage --batch, by the section robots of a configuration.
func answerUsage(rules *policy.Robots, line []byte) (any, error) {
	var q usageQuestion
	if err := console.Question(line, &q); err != nil {
		return nil, err
	}
	if q.URL == nil {
		return nil, errors.New(`"url" is missing`)
	}
	r := reading{Path: canonical.PathOf(*q.URL), Header: http.Header{}}
	for i, pair := range q.Headers {
		if len(pair) != 2 {
			return nil, fmt.Errorf(`"headers" has %d texts in place %d, not a name and a value`, len(pair), i+1)
		}
		r.Header.Add(strings.TrimSpace(pair[0]), strings.Trim(pair[1], " \t"))
	}
	if q.Token != "" {
		r.Tokens = []string{q.Token}
	} else if token := policy.ProductToken(q.Agent); token != "" {
		r.Tokens = []string{token}
	}
	if body := given(q.RobotsB64, q.Robots); body != nil {
		r.Decision = rules.Judge(http.StatusOK, body, canonical.Target{Path: r.Path}, r.Tokens)
	}
	if page := given(q.HTMLB64, q.HTML); page != nil {
		if err := r.readPage(bytes.NewReader(page), 0); err != nil {
			return nil, err
		}
	}
	if q.TDMRep != nil {
		r.TDMRep, _ = parseTDMRep([]byte(*q.TDMRep), int(rules.MaxBytes)) // after an error it states nothing
	}
	return r.answer(), nil
}

// withMetas adds the tags of the page's head.
func (r *reading) withMetas(tags robotstag.Tags) robotstag.Tags {
	all := []robotstag.Tags{tags}
	for _, m := range r.Head.Metas {
		all = append(all, robotstag.ParseMeta(m.Name, m.Content))
	}
	return robotstag.Union(all...)
}
