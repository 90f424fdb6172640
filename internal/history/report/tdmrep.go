package report

import (
	"cmp"
	"slices"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/history"
	"robotsgate/policy"
	"robotsgate/policy/usage"
)

// A tdmrepChange is a change of the tdmrep.json in force. An answer without a file states nothing.
type tdmrepChange struct {
	Time time.Time `json:"time"`
	clients
	Was       string        `json:"was"` // SHA-256; empty where there was no file
	Is        string        `json:"is"`
	Diff      []string      `json:"diff"`                // of two files
	DiffMore  int           `json:"diff_more,omitempty"` // lines that are left out
	Usage     []decisionRow `json:"usage"`               // what is stated about the use of content
	UsageMore int           `json:"usage_more,omitempty"`
	Gone      string        `json:"gone,omitempty"` // why there is nothing to compare
}

// WasWords describes the file before the change.
func (c tdmrepChange) WasWords() string { return cmp.Or(c.Was, "no tdmrep.json") }

// IsWords describes the file after it.
func (c tdmrepChange) IsWords() string { return cmp.Or(c.Is, "no tdmrep.json") }

// stateFile is the state of an answer that has a tdmrep.json.
const stateFile policy.State = "file"

// tdmrepRows returns the answers to requests for tdmrep.json, nil if there are none.
func (p *originHistory) tdmrepRows() (rows []answerRow) {
	for _, a := range p.tdmrep {
		r := p.row(a, p.rules.ForTDMRep())
		r.Token = "" // the file is for all clients of a crawler
		if r.State == stateRules {
			r.State = stateFile
		}
		if r.Bytes != nil {
			if body, err := p.reader.Body(r.SHA256); err == nil {
				if _, err := usage.ParseTDMRep([]byte(body)); err != nil {
					r.Error = err.Error() + ", so it states nothing"
				}
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// tdmrepChanges compares the consecutive files that were in force, for clients that no crawler matches and for
// configured crawlers.
func (p *originHistory) tdmrepChanges(paths []string) (all []tdmrepChange) {
	for _, crawlers := range []bool{false, true} {
		answers := slices.DeleteFunc(slices.Clone(p.tdmrep), func(a policy.Answer) bool { return a.Crawlers != crawlers })
		slots := []string{""}
		for _, a := range answers {
			if !slices.Contains(slots, a.Slot) {
				slots = append(slots, a.Slot)
			}
		}
		reported := map[[2]string]bool{} // changes that hold for all crawlers
		for _, slot := range slots {
			phases := phasesOf(answers, slot, p.rules.ForTDMRep(), time.Now())
			for i := 1; i < len(phases); i++ {
				was, is := phases[i-1], phases[i]
				if was.sha256 == is.sha256 || reported[[2]string{was.sha256, is.sha256}] {
					continue
				}
				if slot == "" {
					reported[[2]string{was.sha256, is.sha256}] = true
				}
				c := p.tdmrepChange(was, is, paths)
				c.clients = clientsOf(crawlers, slot)
				c.Token = "" // the file is for all clients of a crawler
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b tdmrepChange) int { return a.Time.Compare(b.Time) })
	return all
}

func (p *originHistory) tdmrepChange(was, is phase, paths []string) tdmrepChange {
	c := tdmrepChange{Time: is.at.UTC(), Was: was.sha256, Is: is.sha256, Diff: []string{}, Usage: []decisionRow{}}
	before, err := p.tdmrepOf(was)
	after, err2 := p.tdmrepOf(is)
	if err != nil || err2 != nil {
		c.Gone = goneWords
		return c
	}
	if c.Was != "" && c.Is != "" {
		c.Diff, c.DiffMore = history.Diff(c.Was[:12]+" "+console.UTC(was.from), before, c.Is[:12]+" "+console.UTC(is.from), after)
	}
	for _, r := range history.CompareTDMRep(before, after, paths) {
		if len(c.Usage) == maxChanged {
			c.UsageMore++
			continue
		}
		c.Usage = append(c.Usage, decisionRow{Path: r.Path, Was: history.StatedWords(r.Was), Is: history.StatedWords(r.Is)})
	}
	return c
}

// tdmrepOf returns the file of a phase, "" if there was none.
func (p *originHistory) tdmrepOf(v phase) (string, error) {
	if v.sha256 == "" {
		return "", nil
	}
	return p.reader.Body(v.sha256)
}
