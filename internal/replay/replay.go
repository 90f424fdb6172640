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
func (o Outcome) Gone() bool { return o != Same && o != Different && o != NoDecision }

// A Replayer decides records again. It is for one goroutine.
type Replayer struct {
	evidence Evidence

	configurations map[string]kept
	histories      map[string][]store.Answer
	rules          map[string]rules
	bytes          int // of rules
}

type kept struct {
	config *policy.Config
	err    error
}

type rules struct {
	file *robotstxt.File
	err  error
}

// What is remembered is bounded: all of it goes when there is too much.
const (
	maxConfigurations = 100
	maxHistories      = 2000
	maxRules          = 128 << 20 // bytes
	maxNames          = 50_000    // of files, gone ones too
)

// New returns a Replayer.
func New(e Evidence) *Replayer {
	return &Replayer{evidence: e, configurations: map[string]kept{}, histories: map[string][]store.Answer{}, rules: map[string]rules{}}
}

// Again decides a record again. Why says in words what differs or is missing.
func (p *Replayer) Again(r *audit.Record) (o Outcome, why string) {
	switch {
	case r.Decision == "":
		return NoDecision, ""
	case r.Redacted:
		return Redacted, "values of its query were not written down"
	}
	c, err := p.configuration(r.Config)
	if err != nil {
		return of(err, NoConfiguration, BadConfiguration), fmt.Sprintf("configuration %s: %v", r.Config, err)
	}
	past, why := past(c, r)
	if why != "" {
		return Different, why
	}
	var missing error
	past.Rules = func(digest string) *robotstxt.File {
		f, err := p.rulesOf(r.Origin, digest, c.Robots.MaxBytes)
		missing = err
		return f
	}
	d, ok := c.Again(past)
	switch {
	case !ok && missing != nil:
		return of(missing, NoSnapshot, BadSnapshot), fmt.Sprintf("snapshot %s: %v", d.Robots.Snapshot.SHA256, missing)
	case !ok:
		return Different, "recorded " + describe(r) + ", now no override applies, and no robots.txt was looked at"
	}
	var now audit.Record
	now.Decide(&d)
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
func past(c *policy.Config, r *audit.Record) (p policy.Past, why string) {
	target, err := policy.ParseURL(r.Origin + r.Path)
	if err != nil || target.Origin() != r.Origin || r.Path != "" && target.Path != r.Path {
		return p, "the URL of the record is none that is decided about"
	}
	crawler := find(c.Crawlers, r.Crawler)
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
	p = policy.Past{Target: target, Whole: r.Path == "", Crawler: crawler, Tokens: tokens, Asked: r.Decided}
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

func find(all policy.Crawlers, name string) *policy.Crawler {
	for _, c := range append(slices.Clone(all.Known), all.Default) {
		if c != nil && c.Name == name {
			return c
		}
	}
	return nil
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
	if r, ok := p.rules[digest]; ok {
		return r.file, r.err
	}
	var r rules
	body, err := p.evidence.Body(digest)
	if err == nil {
		r.file = robotstxt.Parse([]byte(body), 0) // it was cut when it was fetched
	} else if r.file = p.cut(origin, digest, maxBytes); r.file == nil {
		r.err = err
	}
	if r.file != nil {
		if p.bytes += r.file.Size(); p.bytes > maxRules {
			clear(p.rules)
			p.bytes = r.file.Size()
		}
	}
	if len(p.rules) >= maxNames {
		clear(p.rules)
		p.bytes = 0
	}
	p.rules[digest] = r
	return r.file, r.err
}

// cut looks for a longer file of the origin that is cut to the one that a digest names.
func (p *Replayer) cut(origin, digest string, maxBytes int) *robotstxt.File {
	history, err := p.history(origin)
	if err != nil {
		return nil
	}
	tried := map[string]bool{}
	for _, a := range history {
		longer := a.Snapshot.SHA256
		if longer == "" || tried[longer] {
			continue
		}
		tried[longer] = true
		body, err := p.evidence.Body(longer)
		if err != nil || len(body) <= maxBytes {
			continue
		}
		if f := robotstxt.Parse([]byte(body), maxBytes); policy.Digest(f.Body()) == digest {
			return f
		}
	}
	return nil
}
