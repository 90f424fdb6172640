// Package record has the record of a request: plain data, its JSON in the audit log, the bounds of its texts, and the
// redaction of queries. Package proxy makes records, with [policy.Decision.Record] for the decision.
package record

import (
	"cmp"
	"encoding/json"
	"time"

	"robotsgate/policy/usage"
)

// A Record is the result of one request. The audit log, the metrics and the status page are made from records, and from
// nothing else. In JSON members that do not apply are left out.
type Record struct {
	Time      time.Time      `json:"time"` // when the request arrived
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
	Reason    string         `json:"reason,omitempty"`
	Paced     Paced          `json:"paced,omitzero"`     // the request has waited for its turn, or was refused
	Refused   Refusal        `json:"refused,omitempty"`  // why the gate refused the request, if not by the decision
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

	// The log does not have the rest.

	Cause    string    `json:"-"` // why the request was refused, or why it would have been without report mode; may have text from the network
	Unused   string    `json:"-"` // why this tunnel carried no request; empty: the record is of a request, or of a tunnel that was relayed
	HeadRead string    `json:"-"` // how far the page's head was read, as in Robots-Gate-Meta; empty: the origin did not respond
	HeadWhy  string    `json:"-"` // why it was not read whole
	Stages   Durations `json:"-"`
}

// Durations are how long a request took to reach a stage, since it arrived; 0: it did not get so far.
type Durations struct {
	Decided  time.Duration // the decision was made
	Sent     time.Duration // the request was sent to the origin
	Upstream time.Duration // the origin's response head arrived, or the request failed
	Answered time.Duration // the response head was sent to the client
	Signing  time.Duration // what making its signature took, or those of all attempts to send it
}

// A Refusal is the kind of a refusal: the reason of a decision that denies, or one of the kinds below.
type Refusal string

// The kinds of refusals without a decision.
const (
	ByGuard     Refusal = "guard"     // the destination is prohibited
	ByLogin     Refusal = "login"     // the client is none of the crawlers
	ByLimit     Refusal = "limit"     // a limit of the gate, or of its resources, is reached
	ByPace      Refusal = "pace"      // its turn would come too late
	ByBudget    Refusal = "budget"    // the requests of its budget have been sent; the name is that of the rule of package pace
	ByAudit     Refusal = "audit"     // the audit log can't be written
	IsMalformed Refusal = "malformed" // the request is malformed, ambiguous, or of a kind that is not served
)

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
	URL    string    `json:"url"`
	State  string    `json:"state"`
	Age    int64     `json:"age"`    // seconds
	Judged time.Time `json:"judged"` // the time for which it was evaluated
	From   string    `json:"-"`      // where it was found, see [snapshot.Resolution]
	Answer           // that decided
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

// Address returns the URL of the request.
func (r *Record) Address() string { return cmp.Or(r.URL, r.Origin+r.Path) }

// Took returns the time that the request took.
func (r *Record) Took() time.Duration { return Seconds(r.Duration) }

// Seconds returns a number of a record as a duration, within the bounds of that.
func Seconds(n float64) time.Duration {
	return time.Duration(min(max(n, 0), 1e9) * float64(time.Second))
}

// Reported reports whether report mode let the request through, which would have been denied.
func (r *Record) Reported() bool {
	return r.Decision == "deny" && r.Enforced != nil && !*r.Enforced
}

// Denied reports whether the gate refused the request, by its decision or without one.
func (r *Record) Denied() bool {
	return r.Refused != "" || r.Decision == "deny" && !r.Reported()
}

// Kind returns the kind of the refusal, also of one that report mode has prevented. It is empty if the request was not
// refused and would not be.
func (r *Record) Kind() Refusal {
	if r.Refused == "" && r.Decision == "deny" {
		return Refusal(r.Reason)
	}
	return r.Refused
}
