package audit

import (
	"math"
	"net/netip"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// A Record is one request. Members that do not apply are left out.
type Record struct {
	Time     time.Time     `json:"time"`
	ID       string        `json:"id"`
	Crawler  string        `json:"crawler,omitempty"`
	Client   string        `json:"client,omitempty"`
	Method   string        `json:"method"`
	Origin   string        `json:"origin,omitempty"`
	Path     string        `json:"path,omitempty"`     // and query; without for a tunnel that is decided as a whole
	URL      string        `json:"url,omitempty"`      // in place of both: what was sent, if it could not be read
	Redacted bool          `json:"redacted,omitempty"` // values of the query have been replaced
	Tunnel   bool          `json:"tunnel,omitempty"`
	Decision string        `json:"decision,omitempty"` // allow or deny; none was made without
	Enforced *bool         `json:"enforced,omitempty"` // false: denied, but let through
	Reason   policy.Reason `json:"reason,omitempty"`
	Note     string        `json:"note,omitempty"`    // an override's reason
	ReadAs   string        `json:"read_as,omitempty"` // path and query that were denied, where servers may read Path so
	Rule     string        `json:"rule,omitempty"`
	Line     int           `json:"line,omitempty"`
	Group    string        `json:"group,omitempty"`
	Token    string        `json:"token,omitempty"`
	Tokens   []string      `json:"tokens,omitempty"` // all that the crawler obeys, if there are several
	Decided  time.Time     `json:"decided,omitzero"` // as of when the overrides were looked at
	Robots   *Robots       `json:"robots,omitempty"` //
	Tags     []string      `json:"tags,omitempty"`   // that bind the crawler
	Status   int           `json:"status"`           // 0: the client left before an answer
	Bytes    int64         `json:"bytes"`            // of the response's body
	Duration float64       `json:"duration"`         // seconds
	Error    string        `json:"error,omitempty"`  //
	Config   string        `json:"config,omitempty"` // SHA-256 of the configuration in force
	Link                   // to the records before it
}

// Robots is the evidence of a decision.
type Robots struct {
	URL    string       `json:"url"`
	State  policy.State `json:"state"`
	Age    int64        `json:"age"`    // seconds
	Judged time.Time    `json:"judged"` // as of when
	Answer              // what is obeyed, or stands for its absence
	// Where a copy stands in for what the origin answers: what that is.
	Instead *Answer `json:"instead_of,omitempty"`
	// Where the last good copy is not what is obeyed: which that is.
	Copy *Answer `json:"copy,omitempty"`
}

// An Answer is a snapshot, as far as a decision can depend on it.
type Answer struct {
	Status   int       `json:"status,omitempty"` // left out where there was no answer
	SHA256   string    `json:"sha256,omitempty"`
	Fetched  time.Time `json:"fetched"`
	Lifetime *float64  `json:"lifetime,omitempty"` // seconds; left out where the origin does not say
	Since    time.Time `json:"since,omitzero"`     // of failures: the first in a row
	Looped   bool      `json:"looped,omitempty"`
	Others   bool      `json:"others,omitempty"` // many crawlers share it
}

// set is the answer of a snapshot. It uses memory for its lifetime.
func (a *Answer) set(s *policy.Snapshot, lifetime *float64) {
	*a = Answer{Status: s.Status, SHA256: s.SHA256, Fetched: s.Fetched.UTC(), Looped: s.Looped, Others: s.Others}
	if s.Lifetime >= 0 {
		*lifetime = s.Lifetime.Seconds()
		a.Lifetime = lifetime
	}
	if !s.Since.IsZero() {
		a.Since = s.Since.UTC()
	}
}

// Snapshot undoes set. It has no body.
func (a *Answer) Snapshot() *policy.Snapshot {
	s := &policy.Snapshot{Status: a.Status, SHA256: a.SHA256, Fetched: a.Fetched, Since: a.Since, Looped: a.Looped, Others: a.Others, Lifetime: -1}
	if a.Lifetime != nil {
		s.Lifetime = time.Duration(math.Round(*a.Lifetime * float64(time.Second)))
	}
	return s
}

// evidence is the memory for what a record points to.
type evidence struct {
	enforced      bool
	robots        Robots
	instead, copy Answer
	lifetimes     [3]float64
}

func (e *evidence) of(d *policy.Decision) *Robots {
	st, r := d.Robots, &e.robots
	r.URL, r.State, r.Judged = d.URL, st.State, st.At.UTC()
	r.set(st.Snapshot, &e.lifetimes[0])
	// By the times as they are written down: while a machine sleeps, st.Age stands still.
	r.Age = int64(max(r.Judged.Round(0).Sub(r.Fetched.Round(0)), 0) / time.Second)
	if st.Answer != nil && st.Answer != st.Snapshot {
		e.instead.set(st.Answer, &e.lifetimes[1])
		r.Instead = &e.instead
	}
	if st.Good != nil && st.Good != st.Snapshot {
		e.copy.set(st.Good, &e.lifetimes[2])
		r.Copy = &e.copy
	}
	return r
}

// A draft is a record that is being written, with the memory for it.
type draft struct {
	Record
	evidence evidence
	clock    clock
	client   netip.Addr // whose text is kept: many requests in a row come from one
	address  string
	tags     []string
	line     []byte
}

// take takes down an exchange.
func (d *draft) take(x *proxy.Record, redact bool) {
	r := &d.Record
	*r = Record{
		Time: x.Start.UTC(), ID: x.ID, Crawler: x.Crawler, Method: x.Method, Tunnel: x.Tunnel,
		Status: x.Status, Bytes: x.Bytes, Duration: x.Duration.Seconds(), Error: x.Error, Config: x.Config,
	}
	url := x.URL
	if redact {
		url = Redact(url)
		r.Redacted = url != x.URL
	}
	if r.Origin, r.Path = split(url, x.Decision != nil); r.Origin == "" {
		r.URL = url
	}
	if x.Client.IsValid() {
		if x.Client != d.client {
			d.client, d.address = x.Client, x.Client.String()
		}
		r.Client = d.address
	}
	for _, rule := range x.Tags {
		d.tags = append(d.tags, rule.String())
	}
	for _, rule := range x.Remembered {
		d.tags = append(d.tags, rule.String())
	}
	r.Tags = d.tags
	if x.Decision != nil {
		r.decide(x.Decision, &d.evidence)
		if redact {
			r.ReadAs = Redact(r.ReadAs)
		}
	}
}

// clear makes a draft fit for another record. It holds on to nothing of this one but the
// client's address: a rule would keep its whole robots.txt.
func (d *draft) clear() {
	const most = 64 << 10 // bytes of a line, and a hundredth as many tags
	clear(d.tags)
	d.Record, d.evidence, d.tags, d.line = Record{}, evidence{}, d.tags[:0], d.line[:0]
	if cap(d.tags) > most/100 {
		d.tags = nil
	}
	if cap(d.line) > most {
		d.line = nil
	}
}

// Decide takes a decision down.
func (r *Record) Decide(d *policy.Decision) { r.decide(d, new(evidence)) }

func (r *Record) decide(d *policy.Decision, e *evidence) {
	r.Decision = "deny"
	if d.Allow {
		r.Decision = "allow"
	}
	if !d.Allow && !d.Enforced {
		r.Enforced = &e.enforced
	}
	r.Reason, r.Note, r.ReadAs, r.Group, r.Token, r.Decided = d.Reason, d.Note, d.ReadAs, d.Group.Name(), d.Token, d.Asked.UTC()
	if len(d.Tokens) > 1 {
		r.Tokens = d.Tokens
	}
	if d.Reason == policy.ByRule {
		r.Rule, r.Line = d.Rule.String(), d.Rule.Line
	}
	if d.Robots != nil {
		r.Robots = e.of(d)
	}
}

// split cuts a canonical URL into its origin and the rest. What is not canonical was
// not understood, and has neither. A URL that a decision was made about is known to be.
func split(url string, decided bool) (origin, path string) {
	if decided {
		if i := strings.Index(url, "://") + len("://"); i >= len("http://") {
			if end := strings.IndexByte(url[i:], '/'); end >= 0 {
				return url[:i+end], url[i+end:]
			}
			return url, ""
		}
	}
	t, err := policy.ParseURL(url)
	switch {
	case err != nil:
		return "", ""
	case url == t.Origin():
		return url, ""
	case url == t.String():
		return t.Origin(), t.Path
	}
	return "", ""
}

// written returns when the record was written down, about.
func (r *Record) written() time.Time {
	return r.Time.Add(time.Duration(min(max(r.Duration, 0), 1e9) * float64(time.Second)))
}

// Redact replaces the values of a URL's query by "*"; the names stay.
func Redact(url string) string {
	head, query, ok := strings.Cut(url, "?")
	if !ok {
		return url
	}
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		if name, _, ok := strings.Cut(p, "="); ok {
			pairs[i] = name + "=*"
		} else if p != "" {
			pairs[i] = "*" // a lone word may be a secret as well
		}
	}
	return head + "?" + strings.Join(pairs, "&")
}
