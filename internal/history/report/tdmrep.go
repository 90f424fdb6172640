package report

import (
	"cmp"
	"slices"
	"time"

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
		r.Token = "" // the file is for all clients of a crawler
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

// tdmrepChanges compares the consecutive files that were in force, for clients that no crawler matches and for
// configured crawlers.
func (p *originHistory) tdmrepChanges(paths []string) (all []changeRow) {
	for _, crawlers := range []bool{false, true} {
		answers := slices.DeleteFunc(slices.Clone(p.tdmrep), func(a snapshot.Answer) bool { return a.Crawlers != crawlers })
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
				all = append(all, p.tdmrepChange(clientsOf(crawlers, slot), was, is, paths))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b changeRow) int { return a.Time.Compare(b.Time) })
	return all
}

func (p *originHistory) tdmrepChange(of clients, was, is phase, paths []string) changeRow {
	of.Token = "" // the file is for all clients of a crawler
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
