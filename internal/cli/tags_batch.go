package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

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

// A tagsAnswer is the rules for a crawler.
type tagsAnswer struct {
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

// answerTags answers a question of tags --batch.
func answerTags(line []byte) (any, error) {
	var q tagsQuestion
	if err := console.Question(line, &q); err != nil {
		return nil, err
	}
	page := given(q.HTMLB64, q.HTML)
	var tokens []string
	if q.Token != "" {
		tokens = []string{q.Token}
	}
	var tags robotstag.Tags
	switch field := strings.ToLower(q.Field); {
	case field == "" && (page == nil || len(page) == 0 && len(q.Lines) > 0):
		return nil, errors.New(`"field" with "lines", or "html" or "html_b64", is missing`)
	case field == "":
		return tagsOf(tags, page, q.ContentType, tokens)
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
	return tagsOf(tags, nil, "", tokens)
}

// tagsOf returns the rules for a crawler in headers and, if page is not nil, in the head of a
// page. It reads the page as the gate does; without a Content-Type it is HTML.
func tagsOf(tags robotstag.Tags, page []byte, contentType string, tokens []string) (a tagsAnswer, err error) {
	r := reading{Header: http.Header{}, Tokens: tokens}
	if contentType = strings.TrimSpace(contentType); contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if page != nil {
		if err := r.readPage(bytes.NewReader(page), 0); err != nil {
			return a, err
		}
	}
	return r.rules(tags), nil
}

// rules returns the rules for the crawler in headers and in the head of the page.
func (r *reading) rules(headers robotstag.Tags) tagsAnswer {
	tags := r.withMetas(headers)
	rules := tags.For(r.Tokens...)
	a := tagsAnswer{
		Rules: robotstag.Effective(rules), Truncated: tags.Truncated, Skipped: r.Skipped, Partial: r.Head.Why,
		Detail: []tagDetail{}, Unknown: append([]string{}, tags.Unknown...), // [] in place of null
	}
	for _, r := range rules {
		a.Detail = append(a.Detail, tagDetail{r.Name, r.Value, r.Source, r.Scope})
	}
	return a
}

// given returns the bytes of a member in base64, or else the text beside it: programs may write empty members.
func given(base64 []byte, text *string) []byte {
	if len(base64) == 0 && text != nil {
		return []byte(*text)
	}
	return base64
}
