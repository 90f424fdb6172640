package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
)

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
	return batch(s, func(line []byte) (any, error) { return usageLineOf(&rules, line) })
}

func usageLineOf(rules *policy.Robots, line []byte) (any, error) {
	var q usageQuestion
	if err := question(line, &q); err != nil {
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
		r.decision = rules.Judge(http.StatusOK, body, policy.Target{Path: r.path}, r.tokens)
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
