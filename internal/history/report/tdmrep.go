package report

import (
	"cmp"
	"slices"

	"robotsgate/internal/history"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// stateFile is the state of an answer that has a tdmrep.json.
const stateFile snapshot.State = "file"

// tdmrepRows returns the answers to requests for tdmrep.json, nil if there are none.
func (p *originHistory) tdmrepRows() (rows []answerRow) {
	for _, a := range p.tdmrep {
		r := p.row(a, p.rules.ForTDMRep())
		if r.State == stateRules {
			r.State = stateFile
		}
		if r.Bytes != nil {
			if body, err := p.archive.Body(r.SHA256); err == nil {
				if _, err := usage.ParseTDMRep([]byte(body)); err != nil {
					r.Error = err.Error() + ", so it states nothing"
				}
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// tdmrepChanges compares the consecutive files that were in force.
func (p *originHistory) tdmrepChanges(paths []string) []changeRow {
	all := changesOf(p.tdmrep, p.rules.ForTDMRep(), func(of clients, was, is phase) changeRow {
		return p.tdmrepChange(of, was, is, paths)
	})
	return slices.DeleteFunc(all, func(c changeRow) bool { return c.Was == c.Is }) // answers without a file
}

func (p *originHistory) tdmrepChange(of clients, was, is phase, paths []string) changeRow {
	c, before, after := between(of, was, is, p.tdmrepOf)
	c.WasWords, c.IsWords = cmp.Or(c.Was, "no tdmrep.json"), cmp.Or(c.Is, "no tdmrep.json")
	if c.Gone == "" {
		c.restated(history.CompareTDMRep(before, after, paths))
	}
	return c
}

// tdmrepOf returns the file of a phase, "" if there was none.
func (p *originHistory) tdmrepOf(v phase) (string, error) {
	if v.sha256 == "" {
		return "", nil
	}
	return p.archive.Body(v.sha256)
}
