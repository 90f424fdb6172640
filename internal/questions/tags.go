package questions

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"robotsgate/htmlmeta"
	"robotsgate/internal/console"
	"robotsgate/policy/robotstag"
)

// A tagsQuestion is one line of tags --batch.
type tagsQuestion struct {
	Field       string   `json:"field"`
	Lines       []string `json:"lines"`
	HTML        *string  `json:"html"`
	HTMLB64     []byte   `json:"html_b64"`
	ContentType string   `json:"content_type"`
	Token       string   `json:"product_token"`
}

// A TagsAnswer is the rules for a crawler.
type TagsAnswer struct {
	Rules   []string    `json:"rules"`
	Detail  []tagDetail `json:"detail"`
	Unknown []string    `json:"unknown"`
	// Truncated says that a field was longer than is read.
	Truncated bool `json:"truncated,omitempty"`
	// Skipped and Partial say why a page, or the end of its head, was not
	// read, in the words of Robots-Gate-Meta.
	Skipped string `json:"skipped,omitempty"`
	Partial string `json:"partial,omitempty"`
}

type tagDetail struct {
	Rule   string           `json:"rule"`
	Value  string           `json:"value,omitempty"`
	Source robotstag.Source `json:"source"`
	Scope  string           `json:"scope"`
}

// Tags answers a question of tags --batch.
func Tags(line []byte) (any, error) {
	var q tagsQuestion
	if err := console.Question(line, &q); err != nil {
		return nil, err
	}
	// html_b64 has precedence, unless it is empty: programs may write empty members.
	page := q.HTMLB64
	if len(page) == 0 && q.HTML != nil {
		page = []byte(*q.HTML)
	}
	var tokens []string
	if q.Token != "" {
		tokens = []string{q.Token}
	}
	var tags robotstag.Tags
	switch field := strings.ToLower(q.Field); {
	case field == "" && (page == nil || len(page) == 0 && len(q.Lines) > 0):
		return nil, errors.New(`"field" with "lines", or "html" or "html_b64", is missing`)
	case field == "":
		return TagsOf(tags, page, q.ContentType, tokens)
	case len(page) > 0:
		return nil, errors.New(`"field" is for headers, "html" and "html_b64" are for pages: ask for each in a line of its own`)
	case q.Lines == nil:
		return nil, errors.New(`"lines" is missing`)
	case field == "robots-tag":
		tags = robotstag.ParseHeader(q.Lines, nil)
	case field == "x-robots-tag":
		tags = robotstag.ParseHeader(nil, q.Lines)
	default:
		return nil, fmt.Errorf(`"field" is %q, neither Robots-Tag nor X-Robots-Tag`, q.Field)
	}
	return TagsOf(tags, nil, "", tokens)
}

// TagsOf returns the rules for a crawler in headers and, if page is not nil, in the head of a
// page. It reads the page as the gate does; without a Content-Type it is HTML.
func TagsOf(tags robotstag.Tags, page []byte, contentType string, tokens []string) (a TagsAnswer, err error) {
	if contentType = strings.TrimSpace(contentType); contentType != "" {
		contentType = htmlmeta.ContentType([]string{contentType})
	}
	switch {
	case page == nil:
	case contentType != "" && !htmlmeta.MayBePage(contentType):
		a.Skipped = "type"
	default:
		res, err := htmlmeta.Scan(bytes.NewReader(page), htmlmeta.Options{ContentType: contentType})
		if err != nil {
			return a, err
		}
		all := []robotstag.Tags{tags}
		for _, m := range res.Metas {
			all = append(all, robotstag.ParseMeta(m.Name, m.Content))
		}
		tags = robotstag.Union(all...)
		if a.Partial = res.Why; res.Why == "type" {
			a.Partial, a.Skipped = "", "type"
		}
	}
	rules := tags.For(tokens...)
	a.Rules, a.Truncated = robotstag.Effective(rules), tags.Truncated
	a.Detail, a.Unknown = []tagDetail{}, append([]string{}, tags.Unknown...) // [] in place of null
	for _, r := range rules {
		a.Detail = append(a.Detail, tagDetail{r.Name, r.Value, r.Source, r.Scope})
	}
	return a, nil
}
