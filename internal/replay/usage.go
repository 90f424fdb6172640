package replay

import (
	"fmt"
	"slices"
	"strings"

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/usage"
)

// This file is about usage preferences. What robots.txt and tdmrep.json state is decided again from the kept files.
// What a response states is not kept, so the entry is taken at its word there.

// byResponse reports whether a request was allowed and its response refused: for what its header or its page's
// head reserves, or because the head could not be read whole.
func byResponse(r *record.Record) bool {
	return r.Reason == string(policy.ByUsage) && (r.Reserved == nil || r.Reserved.In == usage.InHeader || r.Reserved.In == usage.InMeta)
}

// beforeResponse returns such an entry as it was before the response, if the response could be refused, else nil.
// d is the decision of the replay, and now its entry.
func beforeResponse(r, now *record.Record, d *policy.Decision, c *policy.Config) *record.Record {
	enforced := r.Enforced == nil || *r.Enforced
	if r.Decision != "deny" || !d.Allow || d.Reason == policy.ByOverride || enforced != d.Enforced || !c.Usage.Refuses() || !d.Crawler.Declares() {
		return nil
	}
	if by := r.Reserved; by != nil {
		p := usage.Preference{Category: by.Use, Allowed: by.Value != "n"}
		if by.Use == usage.LevelCategory {
			p.Level = usage.Level(by.Value)
		}
		s := usage.Stated{Preferences: []usage.Preference{p}}
		if _, _, reserved := s.Reserved(d.Crawler.Purposes, d.Crawler.ContentUse); !reserved || !slices.Contains(r.Usage, *by) && !r.Cut {
			return nil
		}
	}
	was := *r
	was.Decision, was.Reason, was.Rule, was.Line, was.Enforced, was.Reserved = now.Decision, now.Reason, now.Rule, now.Line, nil, nil
	return &was
}

// preferences are usage preferences, as texts to compare and to print.
type preferences []*usage.Detail

func (all preferences) String() string {
	var texts []string
	for _, p := range all {
		at := string(p.In)
		if p.Line > 0 {
			at = fmt.Sprintf("line %d", p.Line)
		}
		texts = append(texts, fmt.Sprintf("%s=%s (%s, %s)", p.Use, p.Value, p.Source, at))
	}
	return strings.Join(texts, ", ")
}

// statedBefore returns the parts of two lists of preferences that must be the same: what is recorded, and what
// robots.txt and tdmrep.json state by the replay.
func statedBefore(recorded, now []usage.Detail) (was, is string) {
	if len(recorded) == 0 {
		return "", "" // earlier versions recorded none
	}
	// A response replaces what tdmrep.json states (TDM Reservation Protocol, Processing priority).
	replaced := slices.ContainsFunc(recorded, func(p usage.Detail) bool { return p.Source == usage.TDMRep && p.In != usage.InWellKnown })
	before := func(list []usage.Detail) preferences {
		var all preferences
		for i := range list {
			p := &list[i]
			// Of other categories only some are listed, and those of the response may come first.
			known := p.Use == usage.LevelCategory || slices.Contains(usage.Purposes, usage.Purpose(p.Use))
			if known && (p.In == usage.InRobots || p.In == usage.InWellKnown && !replaced) {
				all = append(all, p)
			}
		}
		return all
	}
	return logtext.Printable(before(recorded).String()), logtext.Printable(before(now).String())
}
