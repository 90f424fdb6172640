package cli

import (
	"errors"
	"fmt"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// A checkQuestion is one line of check --batch.
type checkQuestion struct {
	Robots    *string `json:"robots"`
	RobotsB64 []byte  `json:"robots_b64"`
	URL       *string `json:"url"`
	Token     *string `json:"product_token"`
	Agent     *string `json:"user_agent"`
	Status    *int    `json:"status"`
}

type checkAnswer struct {
	Allowed    bool          `json:"allowed"`
	Reason     policy.Reason `json:"reason"`
	Line       int           `json:"line,omitempty"`
	Rule       string        `json:"rule,omitempty"`
	Group      string        `json:"group,omitempty"`
	Token      string        `json:"product_token,omitempty"`
	CrawlDelay *float64      `json:"crawl_delay,omitempty"`
	Sitemaps   []string      `json:"sitemaps,omitempty"`
	ReadAs     string        `json:"read_as,omitempty"`   // a denied path that servers may take the URL's path for
	Truncated  bool          `json:"truncated,omitempty"` // the robots.txt is longer than robots.max_bytes
}

// answerCheck answers a question of check --batch. Strict asks for other readings of the path, too.
func answerCheck(rules *policy.Robots, strict bool, line []byte) (any, error) {
	var q checkQuestion
	if err := console.Question(line, &q); err != nil {
		return nil, err
	}
	if q.URL == nil {
		return nil, errors.New(`"url" is missing`)
	}
	if !httpURL(*q.URL) {
		return nil, errors.New(`"url" is no http or https URL: begin it with http:// or https:// and a host`)
	}
	status := 200
	if q.Status != nil {
		if status = *q.Status; status < 100 || status > 999 {
			return nil, fmt.Errorf(`"status" is %d, not a status`, status)
		}
	}
	body := given(q.RobotsB64, q.Robots)
	if body == nil && q.Status == nil {
		return nil, errors.New(`"robots" or "robots_b64" is missing`)
	}
	var tokens []string
	switch {
	case q.Token != nil && *q.Token != "":
		tokens = []string{*q.Token}
	case q.Agent != nil:
		if token := policy.ProductToken(*q.Agent); token != "" {
			tokens = []string{token}
		}
	}
	t := canonical.Target{Path: canonical.PathOf(*q.URL)}
	d := rules.Judge(status, body, t, tokens)
	a := checkAnswer{Allowed: d.Allow, Reason: d.Reason, Group: d.Group.Name(), Token: d.Token}
	if d.Reason == policy.ByRule {
		a.Line, a.Rule = d.Rule.Line, d.Rule.String()
	}
	a.CrawlDelay = d.CrawlDelay()
	if d.Robots.File != nil {
		a.Truncated = d.Robots.File.Truncated()
		for r := range d.Robots.File.Fields("Sitemap") {
			if r.Value != "" {
				a.Sitemaps = append(a.Sitemaps, r.Value)
			}
		}
		if strict {
			a.ReadAs = d.OtherReading(t)
		}
	}
	return a, nil
}

// httpURL reports whether a text is an absolute http or https URL with a host. Nothing else of it matters
// here: a path that a gate refuses to send is judged as it stands.
func httpURL(text string) bool {
	scheme, rest, ok := strings.Cut(text, "://")
	isHTTP := strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
	return ok && isHTTP && rest != "" && strings.IndexByte("/?#", rest[0]) < 0
}
