// Package replay decides past requests again, from the entries of the audit log and the kept
// evidence that they name. [Replayer.Replay] takes one entry.
//
// It has no rules of its own: it finds the evidence, lets package policy decide, and compares
// the decisions.
package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// Evidence is what entries name. The data_dir of a gate has it, and so has a bundle that was made from one.
type Evidence interface {
	// Configuration returns the text of the configuration with a SHA-256. The error is fs.ErrNotExist if
	// it is not kept, and snapshot.ErrChanged if it does not match its name.
	Configuration(digest string) ([]byte, error)
	// History returns the answers of an origin to requests for its robots.txt, the oldest first.
	History(origin string) ([]snapshot.Answer, error)
	// TDMRepHistory returns those to requests for its tdmrep.json.
	TDMRepHistory(origin string) ([]snapshot.Answer, error)
	// Body returns a file of an origin by its SHA-256, with the errors of Configuration.
	Body(origin, digest string) (string, error)
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

// Key returns the name of the outcome in JSON.
func (o Outcome) Key() string { return strings.ReplaceAll(string(o), " ", "_") }

// Gone reports whether evidence is missing.
func (o Outcome) Gone() bool {
	return o != Same && o != Different && o != NoDecision && !o.Changed()
}

// Changed reports whether evidence has been changed or can't be read.
func (o Outcome) Changed() bool {
	return o == BadConfiguration || o == BadSnapshot || o == Unreadable
}

// A Replayer decides entries again. It is for one goroutine.
type Replayer struct {
	configuration func(digest string) (*policy.Config, error)
	history       func(origin string) ([]snapshot.Answer, error)
	tdmHistory    func(origin string) ([]snapshot.Answer, error)
	body          func(origin, digest string) (string, error)

	rules     func(fileKey) (*robotstxt.File, error)
	truncated func(fileKey) (digest string, err error)
	tdmrep    func(fileKey) (*usage.TDMFile, error)
}

// A fileKey names a file of an origin with a digest, a robots.txt under a limit on its size.
type fileKey struct {
	origin, digest string
	maxBytes       int
}

// maxConfigurations bounds the configurations that are kept parsed, in bytes of their texts with one KiB more for each.
const maxConfigurations = 8 << 20

// maxRules bounds the robots.txt files that are kept parsed, in bytes of their bodies with one KiB more for each. A
// parsed file takes some three times as much.
const maxRules = 32 << 20

// New returns a Replayer. Parse returns the settings in the text of a configuration.
func New(e Evidence, parse func(text []byte) (*policy.Config, error)) *Replayer {
	p := &Replayer{history: cached(2000, e.History), tdmHistory: cached(2000, e.TDMRepHistory), body: e.Body}
	type sized struct {
		config *policy.Config
		size   int
	}
	configurations := cachedBy(maxConfigurations, func(c sized) int { return c.size + 1<<10 }, func(digest string) (sized, error) {
		text, err := e.Configuration(digest)
		if err != nil {
			return sized{}, err
		}
		c, err := parse(text)
		return sized{c, len(text)}, err
	})
	p.configuration = func(digest string) (*policy.Config, error) {
		c, err := configurations(digest)
		return c.config, err
	}
	p.rules = cachedBy(maxRules, func(f *robotstxt.File) int {
		if f == nil {
			return 1 << 10
		}
		return len(f.Body()) + 1<<10
	}, p.readRules)
	p.truncated = cached(50_000, p.truncate)
	p.tdmrep = cached(50, p.readTDMRep) // at most some 100 MiB
	return p
}

// cached returns f with a cache of its results, which is emptied when it has a number of them.
func cached[K comparable, V any](limit int, f func(K) (V, error)) func(K) (V, error) {
	return cachedBy(limit, func(V) int { return 1 }, f)
}

// cachedBy returns f with a cache of its results, which is emptied before their sizes are more than limit together.
func cachedBy[K comparable, V any](limit int, size func(V) int, f func(K) (V, error)) func(K) (V, error) {
	type result struct {
		value V
		err   error
	}
	results, total := map[K]result{}, 0
	return func(key K) (V, error) {
		r, ok := results[key]
		if !ok {
			r.value, r.err = f(key)
			n := size(r.value)
			if total += n; total > limit {
				clear(results)
				total = n
			}
			results[key] = r
		}
		return r.value, r.err
	}
}

// Replay decides an entry again. Why states what differs or is missing.
func (p *Replayer) Replay(r *record.Record) (o Outcome, why string) {
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
	if r.TDMRep != "" {
		file, err := p.tdmrep(fileKey{origin: r.Origin, digest: r.TDMRep})
		if err != nil {
			return outcome(err, NoSnapshot, BadSnapshot), fmt.Sprintf("snapshot %s: %v", r.TDMRep, err)
		}
		if file == nil {
			return Different, "recorded tdmrep.json " + logtext.Printable(r.TDMRep) + ", which states nothing"
		}
		past.TDMRep = &snapshot.Resolution{Snapshot: &snapshot.Snapshot{SHA256: r.TDMRep}, TDMRep: file}
	}
	var missing error
	past.Rules = func(digest string) *robotstxt.File {
		var f *robotstxt.File
		f, missing = p.rules(fileKey{r.Origin, digest, c.Robots.MaxBytes})
		return f
	}
	d, ok := c.Replay(past)
	switch {
	case !ok && missing != nil:
		return outcome(missing, NoSnapshot, BadSnapshot), fmt.Sprintf("snapshot %s: %v", d.Robots.Snapshot.SHA256, missing)
	case !ok:
		return Different, "recorded " + describe(r) + ", now no override decides, and no robots.txt was looked at"
	}
	var now record.Record
	d.Record(&now)
	if now.Robots != nil && now.Robots.URL != r.Robots.URL {
		return Different, logtext.Printable("recorded " + r.Robots.URL + ", which is not the robots.txt of " + r.Origin)
	}
	was := r
	if byResponse(r) {
		was = beforeResponse(r, &now, d, c)
	}
	if was == nil || !sameDecision(was, &now) {
		return Different, "recorded " + describe(r) + ", now " + describe(&now)
	}
	if d.Robots == nil {
		return Same, "" // what is stated beside an override has no evidence
	}
	if was, is := statedBefore(r.Usage, d.Stated.Details()); was != is && !r.Cut {
		return Different, "recorded usage " + was + ", now " + is
	}
	if o, why := p.wasInForce(r, c, past); o != Same || r.TDMRep == "" {
		return o, why
	}
	return p.tdmrepWasInForce(r, c, past)
}

// outcome distinguishes missing from changed evidence.
func outcome(err error, gone, changed Outcome) Outcome {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone
	case errors.Is(err, snapshot.ErrChanged):
		return changed
	}
	return Unreadable
}

// past returns the request of an entry, or why the entry can't be right.
func past(c *policy.Config, r *record.Record) (p policy.PastRequest, why string) {
	target, err := canonical.ParseURL(r.Origin + r.Path)
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
	p = policy.PastRequest{Target: target, Method: r.Method, Whole: r.Path == "", Crawler: crawler, Tokens: tokens, Asked: r.Decided}
	if r.Robots == nil {
		return p, ""
	}
	obeyed := snapshotOf(&r.Robots.Answer)
	p.Judged, p.Answer = r.Robots.Judged, obeyed
	if r.Robots.Instead != nil {
		p.Answer = snapshotOf(r.Robots.Instead)
	}
	switch {
	case r.Robots.Copy != nil:
		p.Good = snapshotOf(r.Robots.Copy)
	case obeyed.SHA256 != "":
		p.Good = obeyed
	}
	return p, ""
}

// sameDecision compares decisions as entries have them, with their bounds. Entries of earlier versions have none.
func sameDecision(a, b *record.Record) bool {
	was, now := *a, *b
	was.Bound()
	now.Bound()
	return describe(&was) == describe(&now)
}

// describe describes a decision, with all that must be the same after a replay.
func describe(r *record.Record) string {
	text := r.Decision
	add := func(applies bool, format string, args ...any) {
		if applies {
			text += fmt.Sprintf(format, args...)
		}
	}
	add(r.Enforced != nil && !*r.Enforced, " (report mode)")
	add(true, " %s", r.Reason)
	add(r.Line > 0, " line %d: %s", r.Line, r.Rule)
	add(r.Note != "", ": %s", r.Note)
	add(r.Reserved != nil, ": %s", preferences{r.Reserved})
	add(r.ReadAs != "", ", read as %s", r.ReadAs)
	add(r.Group != "", ", group %s", r.Group)
	add(r.Token != "", ", token %s", r.Token)
	if robots := r.Robots; robots != nil {
		add(true, ", robots.txt %s", robots.State)
		add(robots.SHA256 != "", " %s", robots.SHA256)
		add(robots.SHA256 == "" && robots.Status != 0, " %d", robots.Status)
	}
	add(r.TDMRep != "", ", tdmrep.json %s", r.TDMRep)
	return logtext.Printable(text) // in the entry JSON has replaced invalid UTF-8
}

// readRules returns the rules of a file. If the limit on files has been lowered since it was
// fetched, the digest may be that of the part that the limit leaves of a longer file of the origin.
func (p *Replayer) readRules(key fileKey) (*robotstxt.File, error) {
	body, err := p.body(key.origin, key.digest)
	if err == nil {
		return robotstxt.Parse([]byte(body), 0), nil // it was truncated when it was fetched
	}
	history, _ := p.history(key.origin) // none if it can't be read
	for _, a := range history {
		if p.truncatedTo(fileKey{key.origin, a.Snapshot.SHA256, key.maxBytes}) != key.digest {
			continue
		}
		if body, err := p.body(key.origin, a.Snapshot.SHA256); err == nil {
			return robotstxt.Parse([]byte(body), key.maxBytes), nil
		}
	}
	return nil, err
}

// truncatedTo returns the digest of what a limit leaves of a kept file. It is empty if the limit
// leaves all of it, or the file is not kept.
func (p *Replayer) truncatedTo(key fileKey) string {
	to, _ := p.truncated(key)
	return to
}

func (p *Replayer) truncate(key fileKey) (string, error) {
	body, err := p.body(key.origin, key.digest)
	if err != nil || len(body) <= key.maxBytes {
		return "", err
	}
	return snapshot.Digest(robotstxt.Parse([]byte(body), key.maxBytes).Body()), nil
}
