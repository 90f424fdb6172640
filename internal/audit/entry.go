package audit

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// An Entry is what the log has of one request: in messages and documents, its record. Members that do not apply are left
// out.
type Entry struct {
	Time      time.Time      `json:"time"`
	ID        string         `json:"id"`
	Crawler   string         `json:"crawler,omitempty"`
	Client    string         `json:"client,omitempty"`
	Method    string         `json:"method"`
	Origin    string         `json:"origin,omitempty"`
	Path      string         `json:"path,omitempty"`     // and query; empty for a passthrough tunnel
	URL       string         `json:"url,omitempty"`      // in place of both: what the client sent, if it could not be parsed
	Redacted  bool           `json:"redacted,omitempty"` // values of the query have been replaced
	Tunnel    bool           `json:"tunnel,omitempty"`   // the request came through CONNECT or SOCKS
	Socks     bool           `json:"socks,omitempty"`    // it came by SOCKS
	Decision  string         `json:"decision,omitempty"` // allow or deny; empty: none was made
	Enforced  *bool          `json:"enforced,omitempty"` // false: report mode let a denied request through
	Reason    policy.Reason  `json:"reason,omitempty"`
	Paced     Paced          `json:"paced,omitzero"`     // the request has waited for its turn, or was refused
	Refused   proxy.Refusal  `json:"refused,omitempty"`  // why the gate refused the request, if not by the decision
	Reserved  *usage.Detail  `json:"reserved,omitempty"` // of the reason usage: the preference that reserves a purpose of the crawler
	Note      string         `json:"note,omitempty"`     // an override's reason
	ReadAs    string         `json:"read_as,omitempty"`  // path and query that were denied, as servers may read Path
	Rule      string         `json:"rule,omitempty"`
	Line      int            `json:"line,omitempty"`
	Group     string         `json:"group,omitempty"`
	Token     string         `json:"token,omitempty"`
	Tokens    []string       `json:"tokens,omitempty"` // all product tokens that the crawler obeys, if there are several
	Decided   time.Time      `json:"decided,omitzero"` // the time for which the overrides were evaluated
	Robots    *Robots        `json:"robots,omitempty"`
	TDMRep    string         `json:"tdmrep_sha256,omitempty"` // of the origin's tdmrep.json in force
	Tags      []string       `json:"tags,omitempty"`          // robots-tag rules that bind the crawler
	Usage     []usage.Detail `json:"usage,omitempty"`         // the usage preferences in force
	Licenses  []string       `json:"licenses,omitempty"`      // their URLs
	Cut       bool           `json:"cut,omitempty"`           // these three were left out, since the entry would be too long
	Status    int            `json:"status"`                  // 0: the client disconnected before the response
	Bytes     int64          `json:"bytes"`                   // of the response's body
	Duration  float64        `json:"duration"`                // seconds
	Error     string         `json:"error,omitempty"`
	UserAgent string         `json:"user_agent,omitempty"` // that was sent in place of the client's
	Signed    string         `json:"signed,omitempty"`     // the ID of the key that the request was signed with
	Config    string         `json:"config,omitempty"`     // SHA-256 of the configuration in force
	Gate      string         `json:"gate,omitempty"`       // id of the gate that served the request
	Place
}

// A Place is where an entry is in the log of its gate.
type Place struct {
	Lost  int    `json:"lost,omitempty"`  // entries before this one that could not be written
	Index *int64 `json:"index,omitempty"` // from 0; nil: an earlier version has written it
}

// Paced says how the pace has concerned a request: in JSON the seconds that it has waited, or
// "refused".
type Paced struct {
	Held    float64 // seconds
	Refused bool    // its turn would have come too late
}

// MarshalJSON returns the number or the text.
func (p Paced) MarshalJSON() ([]byte, error) {
	if p.Refused {
		return []byte(`"refused"`), nil
	}
	return json.Marshal(p.Held)
}

// UnmarshalJSON reads the number or the text.
func (p *Paced) UnmarshalJSON(data []byte) error {
	if string(data) == `"refused"` {
		*p = Paced{Refused: true}
		return nil
	}
	return json.Unmarshal(data, &p.Held)
}

// Robots is the evidence of a decision.
type Robots struct {
	URL    string         `json:"url"`
	State  snapshot.State `json:"state"`
	Age    int64          `json:"age"`    // seconds
	Judged time.Time      `json:"judged"` // the time for which it was evaluated
	Answer                // that decided
	// Instead is the origin's latest answer, if an older copy decided.
	Instead *Answer `json:"instead_of,omitempty"`
	// Copy is the last good copy, if it did not decide.
	Copy *Answer `json:"copy,omitempty"`
}

// An Answer is what a decision can depend on of a snapshot.
type Answer struct {
	Status     int       `json:"status,omitempty"` // 0: there was no response
	SHA256     string    `json:"sha256,omitempty"`
	Fetched    time.Time `json:"fetched"`
	Lifetime   *float64  `json:"lifetime,omitempty"`   // seconds; nil: the origin does not state it
	Since      time.Time `json:"since,omitzero"`       // of a failure: the first in a row
	HTML       bool      `json:"html,omitempty"`       // an HTML page in place of the file
	Looped     bool      `json:"looped,omitempty"`     // too many redirects
	Substitute bool      `json:"substitute,omitempty"` // it is none of the origin: the gate could not ask in time
}

// answerOf returns the answer of a snapshot.
func answerOf(s *snapshot.Snapshot) Answer {
	a := Answer{Status: s.Status, SHA256: s.SHA256, Fetched: s.Fetched.UTC(), Since: s.Since.UTC(), HTML: s.HTML, Looped: s.Looped, Substitute: s.Substitute}
	if s.Lifetime >= 0 {
		a.Lifetime = new(s.Lifetime.Seconds())
	}
	return a
}

// Snapshot is the inverse of answerOf. It has no body.
func (a *Answer) Snapshot() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Status: a.Status, SHA256: a.SHA256, Fetched: a.Fetched, Since: a.Since, HTML: a.HTML, Looped: a.Looped, Substitute: a.Substitute, Lifetime: -1}
	if a.Lifetime != nil {
		s.Lifetime = time.Duration(math.Round(*a.Lifetime * float64(time.Second)))
	}
	return s
}

// entryOf returns the entry of a request.
func entryOf(x *proxy.Record, redact bool) (r Entry) {
	r = Entry{
		Time: x.Start.UTC(), ID: x.ID, Crawler: x.Crawler, Method: x.Method, Tunnel: x.Tunnel, Socks: x.Socks,
		Status: x.Status, Bytes: x.Bytes, Duration: x.Duration.Seconds(), Error: x.Error, UserAgent: x.UserAgent, Signed: x.Signed, Config: x.Config,
	}
	url := x.URL
	if redact {
		url = Redact(url)
		r.Redacted = url != x.URL
		r.Error = RedactError(r.Error)
	}
	if r.Origin = x.Origin; r.Origin != "" {
		r.Path = strings.TrimPrefix(url, r.Origin)
	} else {
		r.URL = url
	}
	if x.Client.IsValid() {
		r.Client = x.Client.String()
	}
	r.Tags = slices.Grow(r.Tags, len(x.Tags)+len(x.Remembered))
	for _, rule := range x.Tags {
		r.Tags = append(r.Tags, rule.String())
	}
	for _, rule := range x.Remembered {
		r.Tags = append(r.Tags, rule.String())
	}
	r.setStated(x.Stated, redact)
	if x.Decision != nil {
		r.Decide(x.Decision)
		if redact {
			r.ReadAs = Redact(r.ReadAs)
		}
	}
	r.Paced = Paced{Held: x.Paced.Waited().Seconds(), Refused: x.Refused == proxy.ByPace}
	if x.Refused != proxy.Refusal(r.Reason) {
		r.Refused = x.Refused
	}
	r.Bound()
	return r
}

// setStated sets the members about the use of the content.
func (r *Entry) setStated(s usage.Stated, redact bool) {
	r.Usage, r.Licenses = s.Details(), s.URLs()
	if redact {
		for i, url := range r.Licenses { // an origin can repeat what it was asked for
			r.Licenses[i] = Redact(url)
		}
	}
}

// Decide sets the members that state a decision.
func (r *Entry) Decide(d *policy.Decision) {
	r.Decision = "deny"
	if d.Allow {
		r.Decision = "allow"
	}
	if !d.Allow && !d.Enforced {
		r.Enforced = new(false)
	}
	r.Reason, r.Note, r.ReadAs, r.Group, r.Token, r.Decided = d.Reason, d.Note, d.ReadAs, d.Group.Name(), d.Token, d.Asked.UTC()
	if len(d.Tokens) > 1 {
		r.Tokens = d.Tokens
	}
	if d.Reason == policy.ByRule {
		r.Rule, r.Line = d.Rule.String(), d.Rule.Line
	}
	if d.Reason == policy.ByUsage && d.Reserved.Category != "" { // else the page's head could not be read whole
		r.Reserved = new(d.Reserved.Detail())
	}
	if d.Robots != nil {
		r.Robots = robotsOf(d)
	}
	if d.TDMRep != nil && d.TDMRep.TDMRep != nil {
		r.TDMRep = d.TDMRep.Snapshot.SHA256
	}
}

// robotsOf returns the evidence of a decision by a robots.txt.
func robotsOf(d *policy.Decision) *Robots {
	st := d.Robots
	r := &Robots{URL: d.RobotsURL, State: st.State, Judged: st.At.UTC(), Answer: answerOf(st.Snapshot)}
	// The difference of the recorded times: st.Age does not include the time that the machine was asleep.
	r.Age = int64(max(r.Judged.Round(0).Sub(r.Fetched.Round(0)), 0) / time.Second)
	if st.Answer != nil && st.Answer != st.Snapshot {
		r.Instead = new(answerOf(st.Answer))
	}
	if st.Good != nil && st.Good != st.Snapshot {
		r.Copy = new(answerOf(st.Good))
	}
	return r
}

// Permitting returns the override that would allow a request that was denied; nil if there is none.
func (r *Entry) Permitting() *policy.Override {
	target, err := canonical.ParseURL(r.Origin + r.Path)
	if err != nil || r.Decision != "deny" || r.Refused != "" || r.Redacted {
		return nil
	}
	method := r.Method
	if r.Path == "" {
		method = http.MethodConnect // a tunnel that is passed through: all that it carries
	}
	return policy.Permitting(target, method, r.Crawler)
}

// Reported reports whether report mode let the request through, which would have been denied.
func (r *Entry) Reported() bool {
	return r.Decision == "deny" && r.Enforced != nil && !*r.Enforced
}

// denied reports whether the gate refused the request, by its decision or without one.
func (r *Entry) denied() bool {
	return r.Refused != "" || r.Decision == "deny" && !r.Reported()
}

// Redact replaces the values of a URL's query, or of a fragment in its place, by "*"; the names stay.
func Redact(url string) string {
	i := strings.IndexAny(url, "?#")
	if i < 0 {
		return url
	}
	head, query := url[:i+1], url[i+1:]
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		if name, _, ok := strings.Cut(p, "="); ok {
			pairs[i] = name + "=*"
		} else if p != "" {
			pairs[i] = "*" // a lone word may be a secret as well
		}
	}
	return head + strings.Join(pairs, "&")
}

// RedactError replaces what an error quotes by "*": it may be an origin's malformed response, which repeats the query.
func RedactError(text string) string {
	before, _, quotes := strings.Cut(text, `"`)
	if !quotes {
		return text
	}
	last := strings.LastIndexByte(text, '"')
	return before + `"*"` + text[last+1:]
}
