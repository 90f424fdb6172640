package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"robotsgate/policy"
	"robotsgate/policy/usage"
)

type tools struct {
	gate    gate
	local   Local
	crawler string // of all questions
}

func (t *tools) add(s *sdk.Server) {
	addTool(s, "robots_check", "Says whether a crawler may fetch a URL, by the site's robots.txt and the operator's overrides, with the rule and its line, and what robots.txt says about the use of the content (y or n). It does not fetch the page.", t.check)
	addTool(s, "robots_explain", "Says why the gate has refused a request, named by the id in the refusal or by its URL, and what the operator could change.", t.explain)
}

// addTool adds a tool. The SDK takes the schema of the arguments from In, and refuses all others.
func addTool[In any](s *sdk.Server, name, description string, call func(context.Context, In) (any, error)) {
	tool := &sdk.Tool{Name: name, Description: description, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}}
	sdk.AddTool(s, tool, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		v, err := call(ctx, in)
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("no answer within %v: %w", callTimeout, err)
			}
			return nil, nil, err
		}
		if v, err = clean(v); err != nil {
			return nil, nil, err
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // URLs contain "&"
		if err := enc.Encode(v); err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.TrimSpace(text.String())}}, StructuredContent: v}, nil, nil
	})
}

type checkArguments struct {
	URL   string `json:"url" jsonschema:"the URL that is to be fetched"`
	Token string `json:"token,omitempty" jsonschema:"product token of the crawler, such as ExampleBot"`
	Agent string `json:"agent,omitempty" jsonschema:"User-Agent that the crawler sends"`
}

type explainArguments struct {
	ID  string `json:"id,omitempty" jsonschema:"the id in the body of the refusal"`
	URL string `json:"url,omitempty" jsonschema:"the URL that was refused"`
}

// A checkResult is a policy.Explanation with a flat rule.
type checkResult struct {
	URL          string            `json:"url"`
	Allowed      bool              `json:"allowed"`
	Enforced     *bool             `json:"enforced,omitempty"`
	Reason       policy.Reason     `json:"reason"`
	Rule         string            `json:"rule,omitempty"`
	Line         int               `json:"line,omitempty"`
	Group        string            `json:"group,omitempty"`
	ProductToken string            `json:"product_token,omitempty"`
	CrawlDelay   *float64          `json:"crawl_delay,omitempty"`
	Note         string            `json:"note,omitempty"`
	ReadAs       string            `json:"read_as,omitempty"`
	Usage        map[string]string `json:"usage,omitempty"` // by category, what robots.txt states: y or n
	Robots       *robotsResult     `json:"robots,omitempty"`
	DecidedBy    string            `json:"decided_by"`
}

type robotsResult struct {
	URL    string `json:"url"`
	State  string `json:"state"`
	Status int    `json:"status,omitempty"`
	Age    int64  `json:"age"` // seconds
	Error  string `json:"error,omitempty"`
}

// decide returns the decision of the gate that runs, or if there is none the local one, and says which.
func (t *tools) decide(ctx context.Context, q Question) (e *policy.Explanation, by string, err error) {
	q.Crawler = t.crawler
	if q.Token != "" {
		if err := policy.CheckTokens(q.Token); err != nil {
			return nil, "", fmt.Errorf("token: %w", err)
		}
	}
	e, err = t.gate.check(ctx, q)
	if errors.Is(err, errNoGate) {
		by = fmt.Sprintf("robotsgate mcp by its own configuration, since %v", err)
		if e, err = t.local(ctx, q); err != nil {
			err = fmt.Errorf("%s: %w", by, err)
		}
		return e, by, err
	}
	return e, "the gate at " + t.gate.admin, err
}

func (t *tools) check(ctx context.Context, in checkArguments) (any, error) {
	e, by, err := t.decide(ctx, Question{URL: in.URL, Token: in.Token, Agent: in.Agent})
	if err != nil {
		return nil, err
	}
	r := checkResult{
		URL: e.URL, Allowed: e.Allowed, Enforced: e.Enforced, Reason: e.Reason, Group: e.Group, ProductToken: e.ProductToken,
		CrawlDelay: e.CrawlDelay, Note: e.Note, ReadAs: e.ReadAs, Usage: map[string]string{}, DecidedBy: by,
	}
	for _, d := range e.Usage {
		if d.In == usage.InRobots && r.Usage[d.Use] != "n" { // of several statements n counts
			r.Usage[d.Use] = d.Value
		}
	}
	if e.Rule != nil {
		r.Rule, r.Line = e.Rule.Text, e.Rule.Line
	}
	if f := e.Robots; f != nil {
		r.Robots = &robotsResult{f.URL, string(f.State), f.Status, f.Age, f.Error}
	}
	return &r, nil
}

func (t *tools) explain(ctx context.Context, in explainArguments) (any, error) {
	if (in.ID == "") == (in.URL == "") {
		return nil, errors.New("give id, or url")
	}
	query := url.Values{"id": {in.ID}}
	if in.URL != "" {
		query = url.Values{"url": {in.URL}}
	}
	var refusal map[string]any
	err := t.gate.get(ctx, "/api/refusal?"+query.Encode(), "change", &refusal)
	if errors.Is(err, errNoGate) {
		return nil, fmt.Errorf("%w: only the gate that has refused a request knows why. Its admin listener is ROBOTSGATE_ADMIN, else admin.listen", err)
	}
	delete(refusal, "client") // another's address is not the model's business
	return refusal, err
}
