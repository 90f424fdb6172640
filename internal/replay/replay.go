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

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// Evidence is what entries name. The data_dir of a gate has it, and so has a copy of one.
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

// The outcomes. By the last two the decision can't be confirmed.
const (
	Same       Outcome = "same"
	Different  Outcome = "different"
	NoDecision Outcome = "no decision"
	Gone       Outcome = "evidence gone"
	Changed    Outcome = "evidence changed" // or unreadable
)

// A Replayer decides entries again. It is for one goroutine.
type Replayer struct {
	configuration func(digest string) (*policy.Config, error)
	history       func(origin string) ([]snapshot.Answer, error)
	tdmHistory    func(origin string) ([]snapshot.Answer, error)
	rules         func(fileKey) (*robotstxt.File, error)
	tdmrep        func(fileKey) (*usage.TDMFile, error)
}

// A fileKey names a file of an origin with a digest.
type fileKey struct{ origin, digest string }

// maxRules bounds the robots.txt files that are kept parsed, in bytes of their bodies with one KiB more for each. A
// parsed file takes some three times as much.
const maxRules = 32 << 20

// New returns a Replayer. Parse returns the settings in the text of a configuration.
func New(e Evidence, parse func(text []byte) (*policy.Config, error)) *Replayer {
	return &Replayer{
		configuration: cached(16, unit, func(digest string) (*policy.Config, error) {
			text, err := e.Configuration(digest)
			if err != nil {
				return nil, err
			}
			return parse(text)
		}),
		history:    cached(2000, unit, e.History),
		tdmHistory: cached(2000, unit, e.TDMRepHistory),
		rules: cached(maxRules, sizeOf, func(key fileKey) (*robotstxt.File, error) {
			body, err := e.Body(key.origin, key.digest)
			if err != nil {
				return nil, err
			}
			return robotstxt.Parse([]byte(body), 0), nil // it was truncated when it was fetched
		}),
		tdmrep: cached(50, unit, func(key fileKey) (*usage.TDMFile, error) { // at most some 100 MiB
			body, err := e.Body(key.origin, key.digest)
			if err != nil {
				return nil, err
			}
			file, _ := usage.ParseTDMRep([]byte(body)) // nil if it states nothing
			return file, nil
		}),
	}
}

func unit[V any](V) int { return 1 }

func sizeOf(f *robotstxt.File) int {
	if f == nil {
		return 1 << 10
	}
	return len(f.Body()) + 1<<10
}

// cached returns f with a cache of its results, which is emptied before their sizes are more than limit together.
func cached[K comparable, V any](limit int, size func(V) int, f func(K) (V, error)) func(K) (V, error) {
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
		return Gone, "the values of its query were not recorded"
	case r.Config == "":
		return Gone, "the record names no configuration"
	}
	c, err := p.configuration(r.Config)
	if err != nil {
		return outcome(err), fmt.Sprintf("configuration %s: %v", r.Config, err)
	}
	past, why := past(c, r)
	if why != "" {
		return Different, why
	}
	if why := checkTimes(c, r); why != "" {
		return Different, why
	}
	if r.TDMRep != "" {
		file, err := p.tdmrep(fileKey{r.Origin, r.TDMRep})
		if err != nil {
			return outcome(err), fmt.Sprintf("snapshot %s: %v", r.TDMRep, err)
		}
		if file == nil {
			return Different, "recorded tdmrep.json " + logtext.Printable(r.TDMRep) + ", which states nothing"
		}
		past.TDMRep = &snapshot.Resolution{Snapshot: &snapshot.Snapshot{SHA256: r.TDMRep}, TDMRep: file}
	}
	var missing error
	past.Rules = func(digest string) *robotstxt.File {
		var f *robotstxt.File
		f, missing = p.rules(fileKey{r.Origin, digest})
		return f
	}
	d, ok := c.Replay(past)
	switch {
	case !ok && missing != nil:
		return outcome(missing), fmt.Sprintf("snapshot %s: %v", d.Robots.Snapshot.SHA256, missing)
	case !ok:
		return Different, "recorded " + describe(r) + ", now no override decides, and no robots.txt was looked at"
	}
	var now record.Record
	d.Record(&now)
	now.Bound()
	if now.Robots != nil && now.Robots.URL != r.Robots.URL {
		return Different, logtext.Printable("recorded " + r.Robots.URL + ", which is not the robots.txt of " + r.Origin)
	}
	was := r
	if byResponse(r) {
		was = beforeResponse(r, &now, d, c)
	}
	if was == nil || describe(was) != describe(&now) {
		return Different, "recorded " + describe(r) + ", now " + describe(&now)
	}
	if d.Robots == nil {
		return Same, "" // what is stated beside an override has no evidence
	}
	if was, is := statedBefore(r.Usage, d.Stated.Details()); was != is && !r.Cut {
		return Different, "recorded usage " + was + ", now " + is
	}
	return p.wereInForce(r, c, past)
}

// outcome distinguishes missing from other evidence.
func outcome(err error) Outcome {
	if errors.Is(err, fs.ErrNotExist) {
		return Gone
	}
	return Changed
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
