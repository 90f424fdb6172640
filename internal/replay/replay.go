// Package replay decides past requests again, from the records of the audit log and the kept
// evidence that they name. [Replayer.Replay] takes one record.
//
// It has no rules of its own: it finds the evidence, lets package policy decide, and compares
// the decisions.
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

// Evidence returns what records name.
type Evidence struct {
	// Configuration returns the configuration with a SHA-256. The error is fs.ErrNotExist if
	// it is not kept.
	Configuration func(digest string) (*policy.Config, error)
	// History returns the answers of an origin.
	History func(origin string) ([]store.Answer, error)
	// Body returns the file with a SHA-256. The error is fs.ErrNotExist if it is not kept.
	Body func(digest string) (string, error)
}

// An Outcome is the result of a replay.
type Outcome string

// The outcomes. All but the first three mean that the decision can't be confirmed.
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

// Outcomes are all outcomes, in the order of reports.
var Outcomes = []Outcome{Same, Different, NoDecision, Redacted, NoConfiguration, BadConfiguration, NoSnapshot, BadSnapshot, NotInForce, Unreadable}

// Gone reports whether evidence is missing.
func (o Outcome) Gone() bool {
	return o != Same && o != Different && o != NoDecision && !o.Changed()
}

// Changed reports whether evidence has been changed or can't be read.
func (o Outcome) Changed() bool {
	return o == BadConfiguration || o == BadSnapshot || o == Unreadable
}

// A Replayer decides records again. It is for one goroutine.
type Replayer struct {
	evidence Evidence

	// Caches.
	configurations map[string]configuration
	histories      map[string][]store.Answer
	rules          map[string]*robotstxt.File
	bytes          int                  // of rules
	cuts           map[truncated]string // digests of truncated files; empty: the file is not truncated
}

type configuration struct {
	config *policy.Config
	err    error
}

// truncated is a file that a limit may truncate.
type truncated struct {
	digest   string
	maxBytes int
}

// Bounds of the caches.
const (
	maxConfigurations = 100
	maxHistories      = 2000
	maxRules          = 128 << 20 // bytes
	maxFiles          = 50_000
)

// put adds to a cache, which is emptied when it is full.
func put[K comparable, V any](cache map[K]V, limit int, key K, v V) {
	if len(cache) >= limit {
		clear(cache)
	}
	cache[key] = v
}

// New returns a Replayer.
func New(e Evidence) *Replayer {
	return &Replayer{evidence: e, configurations: map[string]configuration{}, histories: map[string][]store.Answer{}, rules: map[string]*robotstxt.File{}, cuts: map[truncated]string{}}
}

// Replay decides a record again. Why states what differs or is missing.
func (p *Replayer) Replay(r *audit.Record) (o Outcome, why string) {
	switch {
	case r.Decision == "":
		return NoDecision, ""
	case r.Redacted:
		return Redacted, "values of its query were not recorded"
	}
	if r.Config == "" {
		return NoConfiguration, "the record names no configuration"
	}
	c, err := p.configuration(r.Config)
	if err != nil {
		return outcome(err, NoConfiguration, BadConfiguration), fmt.Sprintf("configuration %s: %v", r.Config, err)
	}
	past, why := past(c, r)
	if why != "" {
		return Different, why
	}
	if why := checkTimes(c, r); why != "" {
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
		return outcome(missing, NoSnapshot, BadSnapshot), fmt.Sprintf("snapshot %s: %v", d.Robots.Snapshot.SHA256, missing)
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

// outcome distinguishes missing from changed evidence.
func outcome(err error, gone, changed Outcome) Outcome {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone
	case errors.Is(err, store.ErrChanged):
		return changed
	}
	return Unreadable
}

// past returns the request of a record, or why the record can't be right.
func past(c *policy.Config, r *audit.Record) (p policy.PastRequest, why string) {
	target, err := policy.ParseURL(r.Origin + r.Path)
	if err != nil || target.Origin() != r.Origin || r.Path != "" && target.Path != r.Path {
		return p, "the record's URL is not canonical"
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

// describe describes a decision, with all that must be the same after a replay.
func describe(r *audit.Record) string {
	text := r.Decision
	if r.Enforced != nil && !*r.Enforced {
		text += " (report mode)"
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
	return escape.Printable(text) // in the record JSON has replaced invalid UTF-8
}

func (p *Replayer) configuration(digest string) (*policy.Config, error) {
	c, ok := p.configurations[digest]
	if !ok {
		c.config, c.err = p.evidence.Configuration(digest)
		put(p.configurations, maxConfigurations, digest, c)
	}
	return c.config, c.err
}

func (p *Replayer) history(origin string) ([]store.Answer, error) {
	if all, ok := p.histories[origin]; ok {
		return all, nil
	}
	all, err := p.evidence.History(origin)
	if err != nil {
		return nil, err
	}
	put(p.histories, maxHistories, origin, all)
	return all, nil
}

// rulesOf returns the rules of the file with a digest. If the limit on files has been lowered
// since, it may be the digest of a part of a kept file.
func (p *Replayer) rulesOf(origin, digest string, maxBytes int) (*robotstxt.File, error) {
	if f, ok := p.rules[digest]; ok {
		return f, nil
	}
	var f *robotstxt.File
	body, err := p.evidence.Body(digest)
	if err == nil {
		f = robotstxt.Parse([]byte(body), 0) // it was truncated when it was fetched
	} else if f = p.findTruncated(origin, digest, maxBytes); f == nil {
		return nil, err // not cached: another origin may have the whole file
	}
	if p.bytes += f.Size(); p.bytes > maxRules || len(p.rules) >= maxFiles {
		clear(p.rules)
		p.bytes = f.Size()
	}
	p.rules[digest] = f
	return f, nil
}

// findTruncated finds a longer file of the origin of which the limit leaves the file with a
// digest.
func (p *Replayer) findTruncated(origin, digest string, maxBytes int) *robotstxt.File {
	history, err := p.history(origin)
	if err != nil {
		return nil
	}
	for _, a := range history {
		if p.truncate(a.Snapshot.SHA256, maxBytes) != digest {
			continue
		}
		if body, err := p.evidence.Body(a.Snapshot.SHA256); err == nil {
			return robotstxt.Parse([]byte(body), maxBytes)
		}
	}
	return nil
}

// truncate returns the digest of what a limit leaves of a kept file. It is empty if the limit
// leaves all of it, or the file is not kept.
func (p *Replayer) truncate(digest string, maxBytes int) string {
	if digest == "" {
		return ""
	}
	key := truncated{digest, maxBytes}
	if to, ok := p.cuts[key]; ok {
		return to
	}
	to := ""
	if body, err := p.evidence.Body(digest); err == nil && len(body) > maxBytes {
		to = policy.Digest(robotstxt.Parse([]byte(body), maxBytes).Body())
	}
	put(p.cuts, maxFiles, key, to)
	return to
}
