package policy

import (
	"time"

	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// Evidence is a decision in JSON, as in the bodies of refusals. Members that do not
// apply are left out.
type Evidence struct {
	URL          string          `json:"url"`
	ProductToken string          `json:"product_token,omitempty"`
	Reason       Reason          `json:"reason,omitempty"`
	Rule         *RuleEvidence   `json:"rule,omitempty"`
	Group        string          `json:"group,omitempty"`
	Note         string          `json:"note,omitempty"`    // an override's reason
	ReadAs       string          `json:"read_as,omitempty"` // see [Decision]
	Robots       *RobotsEvidence `json:"robots,omitempty"`
	CrawlDelay   *float64        `json:"crawl_delay,omitempty"` // seconds
}

// RuleEvidence is the rule that decided.
type RuleEvidence struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// RobotsEvidence is the robots.txt behind a decision.
type RobotsEvidence struct {
	URL       string         `json:"url"`
	Status    int            `json:"status,omitempty"` // left out where there was no answer
	State     snapshot.State `json:"state"`
	Fetched   time.Time      `json:"fetched"`
	Age       int64          `json:"age"` // seconds
	SHA256    string         `json:"sha256,omitempty"`
	Truncated bool           `json:"truncated,omitempty"`
	HTML      bool           `json:"html,omitempty"` // an HTML page stands in its place
	Error     string         `json:"error,omitempty"`
}

// An Explanation is a decision with its evidence.
type Explanation struct {
	Allowed  bool  `json:"allowed"`
	Enforced *bool `json:"enforced,omitempty"` // false: it would be denied, but is sent
	Evidence
	Usage    []usage.Detail `json:"usage,omitempty"` // what robots.txt and tdmrep.json state for the URL
	Licenses []string       `json:"licenses,omitempty"`
	Reserved *usage.Detail  `json:"reserved,omitempty"` // see [Decision]
	Override string         `json:"override,omitempty"` // see [Decision.Permit]; Explain leaves it empty
}

// Evidence returns the grounds of d.
func (d *Decision) Evidence(url string) Evidence {
	e := Evidence{URL: url, ProductToken: d.Token, Reason: d.Reason, Group: d.Group.Name(), Note: d.Note, ReadAs: d.ReadAs}
	if d.Reason == ByRule {
		e.Rule = &RuleEvidence{d.Rule.Line, d.Rule.String()}
	}
	if st := d.Robots; st != nil {
		s := st.Snapshot
		e.Robots = &RobotsEvidence{
			URL: d.RobotsURL, Status: s.Status, State: st.State, SHA256: s.SHA256, Truncated: s.Cut, HTML: s.HTML, Error: s.Error,
			Fetched: s.Fetched.UTC().Truncate(time.Second), Age: int64(st.Age / time.Second),
		}
	}
	e.CrawlDelay = d.CrawlDelay()
	return e
}

// CrawlDelay returns the Crawl-delay for the crawler of the group obeyed, in seconds; nil if it has none.
func (d *Decision) CrawlDelay() *float64 {
	if delay, _, ok := d.Group.CrawlDelay(); ok {
		return &delay
	}
	return nil
}

// Explain returns d in JSON form.
func (d *Decision) Explain(url string) Explanation {
	e := Explanation{Allowed: d.Allow, Evidence: d.Evidence(url), Usage: d.Stated.Details(), Licenses: d.Stated.URLs()}
	if !d.Allow && !d.Enforced {
		e.Enforced = &d.Enforced
	}
	if d.Reason == ByUsage {
		e.Reserved = new(d.Reserved.Detail())
	}
	return e
}
