// Package replay decides past requests again, from the records of the audit log and
// from what is kept of the evidence that they name.
//
// It has no rules of its own: package policy decides, as it has done then. It finds
// the evidence, and compares.
package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
)

// Evidence is where it is found.
type Evidence struct {
	// Configuration returns the one that a SHA-256 names; the error is fs.ErrNotExist if
	// it is not kept.
	Configuration func(digest string) (*policy.Config, error)
	// History returns what an origin has answered.
	History func(origin string) ([]store.Answer, error)
	// Body returns the file that a SHA-256 names; the error is fs.ErrNotExist if it is
	// not kept.
	Body func(digest string) (string, error)
}

// An Outcome is what deciding again has come to.
type Outcome string

// The outcomes. All but the first three mean that the decision can't be proved.
const (
	Same       Outcome = "same"
	Different  Outcome = "different"
	NoDecision Outcome = "no decision"

	Redacted         Outcome = "query redacted"
	NoConfiguration  Outcome = "configuration gone"
	BadConfiguration Outcome = "configuration changed"
	NoSnapshot       Outcome = "snapshot gone"
	BadSnapshot      Outcome = "snapshot changed"
	NotInForce       Outcome = "not in the origin's history"
	Unreadable       Outcome = "evidence unreadable"
)

// Outcomes are all, in the order in which they are told.
var Outcomes = []Outcome{Same, Different, NoDecision, Redacted, NoConfiguration, BadConfiguration, NoSnapshot, BadSnapshot, NotInForce, Unreadable}

// Gone reports whether the outcome says that evidence is missing.
func (o Outcome) Gone() bool {
	return o != Same && o != Different && o != NoDecision && !o.Changed()
}

// Changed reports whether it says that evidence is there, and not what it was.
func (o Outcome) Changed() bool {
	return o == BadConfiguration || o == BadSnapshot || o == Unreadable
}

// A Replayer decides records again. It is for one goroutine.
type Replayer struct {
	evidence Evidence

	configurations map[string]kept
	histories      map[string][]store.Answer
	rules          map[string]*robotstxt.File
	bytes          int              // of rules
	cuts           map[cutOf]string // the digest of what is left of a file; empty: it is not cut
}

type kept struct {
	config *policy.Config
	err    error
}

// A cutOf is a file that a limit may cut.
type cutOf struct {
	digest   string
	maxBytes int
}

// What is remembered is bounded: all of it goes when there is too much.
const (
	maxConfigurations = 100
	maxHistories      = 2000
	maxRules          = 128 << 20 // bytes
	maxNames          = 50_000    // of files
)

// New returns a Replayer.
func New(e Evidence) *Replayer {
	return &Replayer{evidence: e, configurations: map[string]kept{}, histories: map[string][]store.Answer{}, rules: map[string]*robotstxt.File{}, cuts: map[cutOf]string{}}
}

// Again decides a record again. Why says in words what differs or is missing.
func (p *Replayer) Again(r *audit.Record) (o Outcome, why string) {
	switch {
	case r.Decision == "":
		return NoDecision, ""
	case r.Redacted:
		return Redacted, "values of its query were not written down"
	}
	if r.Config == "" {
		return NoConfiguration, "the record names no configuration"
	}
	c, err := p.configuration(r.Config)
	if err != nil {
		return of(err, NoConfiguration, BadConfiguration), fmt.Sprintf("configuration %s: %v", r.Config, err)
	}
	past, why := past(c, r)
	if why != "" {
		return Different, why
	}
	if why := untimely(c, r); why != "" {
		return Different, why
	}
	var missing error
	past.Rules = func(digest string) *robotstxt.File {
		f, err := p.rulesOf(r.Origin, digest, c.Robots.MaxBytes)
		missing = err
		return f
	}
	d, ok := c.Replay(past)
	switch {
	case !ok && missing != nil:
		return of(missing, NoSnapshot, BadSnapshot), fmt.Sprintf("snapshot %s: %v", d.Robots.Snapshot.SHA256, missing)
	case !ok:
		return Different, "recorded " + describe(r) + ", now no override applies, and no robots.txt was looked at"
	}
	var now audit.Record
	now.Decide(&d)
	if now.Robots != nil && now.Robots.URL != r.Robots.URL {
		return Different, escape.Printable("recorded " + r.Robots.URL + ", which is not the robots.txt of " + r.Origin)
	}
	if was, is := describe(r), describe(&now); was != is {
		return Different, "recorded " + was + ", now " + is
	}
	if d.Robots == nil {
		return Same, ""
	}
	return p.wasInForce(r, c, past)
}

// of tells what is gone from what has been changed.
func of(err error, gone, changed Outcome) Outcome {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone
	case errors.Is(err, store.ErrChanged):
		return changed
	}
	return Unreadable
}

// past returns what a record says, or why it can't be.
func past(c *policy.Config, r *audit.Record) (p policy.PastRequest, why string) {
	target, err := policy.ParseURL(r.Origin + r.Path)
	if err != nil || target.Origin() != r.Origin || r.Path != "" && target.Path != r.Path {
		return p, "the URL of the record is none that is decided about"
	}
	crawler := c.Crawlers.Named(r.Crawler)
	if crawler == nil {
		return p, fmt.Sprintf("the configuration in force then has no crawler %q", r.Crawler)
	}
	tokens := r.Tokens
	if tokens == nil && r.Token != "" {
		tokens = []string{r.Token}
	}
	if len(crawler.Tokens) > 0 && !slices.Equal(crawler.Tokens, tokens) {
		return p, fmt.Sprintf("recorded product tokens %q, the crawler's are %q", tokens, crawler.Tokens)
	}
	p = policy.PastRequest{Target: target, Whole: r.Path == "", Crawler: crawler, Tokens: tokens, Asked: r.Decided}
	if r.Robots == nil {
		return p, ""
	}
	obeyed := r.Robots.Snapshot()
	p.Judged, p.Answer = r.Robots.Judged, obeyed
	if r.Robots.Instead != nil {
		p.Answer = r.Robots.Instead.Snapshot()
	}
	switch {
	case r.Robots.Copy != nil:
		p.Good = r.Robots.Copy.Snapshot()
	case obeyed.SHA256 != "":
		p.Good = obeyed
	}
	return p, ""
}

// describe words a decision with all that must be the same again.
func describe(r *audit.Record) string {
	text := r.Decision
	if r.Enforced != nil && !*r.Enforced {
		text += " (let through)"
	}
	text += " " + string(r.Reason)
	if r.Line > 0 {
		text += fmt.Sprintf(" line %d: %s", r.Line, r.Rule)
	}
	if r.Note != "" {
		text += ": " + r.Note
	}
	if r.ReadAs != "" {
		text += ", read as " + r.ReadAs
	}
	if r.Group != "" {
		text += ", group " + r.Group
	}
	if r.Token != "" {
		text += ", token " + r.Token
	}
	if r.Robots != nil {
		text += fmt.Sprintf(", robots.txt %s", r.Robots.State)
		if r.Robots.SHA256 != "" {
			text += " " + r.Robots.SHA256
		} else if r.Robots.Status != 0 {
			text += fmt.Sprintf(" %d", r.Robots.Status)
		}
	}
	return escape.Printable(text) // JSON has replaced what is no UTF-8, too
}

func (p *Replayer) configuration(digest string) (*policy.Config, error) {
	if k, ok := p.configurations[digest]; ok {
		return k.config, k.err
	}
	if len(p.configurations) >= maxConfigurations {
		clear(p.configurations)
	}
	c, err := p.evidence.Configuration(digest)
	p.configurations[digest] = kept{c, err}
	return c, err
}

func (p *Replayer) history(origin string) ([]store.Answer, error) {
	if all, ok := p.histories[origin]; ok {
		return all, nil
	}
	all, err := p.evidence.History(origin)
	if err != nil {
		return nil, err
	}
	if len(p.histories) >= maxHistories {
		clear(p.histories)
	}
	p.histories[origin] = all
	return all, nil
}

// rulesOf returns the rules that a digest names. If robots.max_bytes has been lowered,
// that is of less than what is kept.
func (p *Replayer) rulesOf(origin, digest string, maxBytes int) (*robotstxt.File, error) {
	if f, ok := p.rules[digest]; ok {
		return f, nil
	}
	var f *robotstxt.File
	body, err := p.evidence.Body(digest)
	if err == nil {
		f = robotstxt.Parse([]byte(body), 0) // it was cut when it was fetched
	} else if f = p.cut(origin, digest, maxBytes); f == nil {
		return nil, err // another origin may have it, of which this is a part
	}
	if p.bytes += f.Size(); p.bytes > maxRules || len(p.rules) >= maxNames {
		clear(p.rules)
		p.bytes = f.Size()
	}
	p.rules[digest] = f
	return f, nil
}

// cut looks for a longer file of the origin that is cut to the one that a digest names.
func (p *Replayer) cut(origin, digest string, maxBytes int) *robotstxt.File {
	history, err := p.history(origin)
	if err != nil {
		return nil
	}
	for _, a := range history {
		if p.cutTo(a.Snapshot.SHA256, maxBytes) != digest {
			continue
		}
		if body, err := p.evidence.Body(a.Snapshot.SHA256); err == nil {
			return robotstxt.Parse([]byte(body), maxBytes)
		}
	}
	return nil
}

// cutTo names what a limit leaves of a file that is kept; it is empty if it leaves all,
// or there is none.
func (p *Replayer) cutTo(digest string, maxBytes int) string {
	if digest == "" {
		return ""
	}
	key := cutOf{digest, maxBytes}
	if to, ok := p.cuts[key]; ok {
		return to
	}
	to := ""
	if body, err := p.evidence.Body(digest); err == nil && len(body) > maxBytes {
		to = policy.Digest(robotstxt.Parse([]byte(body), maxBytes).Body())
	}
	if len(p.cuts) >= maxNames {
		clear(p.cuts)
	}
	p.cuts[key] = to
	return to
}
