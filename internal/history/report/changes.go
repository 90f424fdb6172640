package report

import (
	"maps"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/history"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

// A changeRow is a change of the rules, or of the tdmrep.json, in force.
type changeRow struct {
	Time time.Time `json:"time"`
	clients
	Was       string         `json:"was"` // SHA-256; empty where there was no file
	Is        string         `json:"is"`
	WasState  snapshot.State `json:"was_state,omitempty"` // of rules: stateRules, unavailable or unreachable
	IsState   snapshot.State `json:"is_state,omitempty"`
	Diff      []string       `json:"diff"`                // of two files
	DiffMore  int            `json:"diff_more,omitempty"` // lines that are left out
	Decisions []decisionRow  `json:"decisions,omitzero"`  // nil: of a tdmrep.json, which decides nothing
	More      int            `json:"decisions_more,omitempty"`
	Usage     []decisionRow  `json:"usage"` // what is stated about the use of content
	UsageMore int            `json:"usage_more,omitempty"`
	Gone      string         `json:"gone,omitempty"` // why there is nothing to compare

	WasWords string `json:"-"` // the phases before and after, for people
	IsWords  string `json:"-"`
}

type decisionRow struct {
	Token string `json:"token,omitempty"` // empty: crawlers without a group
	Path  string `json:"path"`
	Was   string `json:"was"`
	Is    string `json:"is"`
}

// maxChanged bounds the decisions, and the changes of usage, that are listed for one change.
const maxChanged = 100

// changes compares the rules of consecutive phases.
func (p *originHistory) changes(paths []string) []changeRow {
	return changesOf(p.answers, &p.rules, func(of clients, was, is phase) changeRow { return p.change(of, was, is, paths) })
}

// changesOf compares consecutive phases, for each asker.
func changesOf(kept []snapshot.Answer, rules *snapshot.Settings, change func(of clients, was, is phase) changeRow) []changeRow {
	all, byAsker := []changeRow{}, map[string][]snapshot.Answer{}
	for _, a := range kept {
		byAsker[a.Asker] = append(byAsker[a.Asker], a)
	}
	for _, asker := range slices.Sorted(maps.Keys(byAsker)) {
		phases := phasesOf(byAsker[asker], rules, time.Now())
		for i := 1; i < len(phases); i++ {
			all = append(all, change(clients{asker}, phases[i-1], phases[i]))
		}
	}
	slices.SortStableFunc(all, func(a, b changeRow) int { return a.Time.Compare(b.Time) })
	return all
}

func (p *originHistory) change(of clients, was, is phase, paths []string) changeRow {
	c, before, after := between(of, was, is, p.rulesOf)
	c.WasState, c.IsState, c.WasWords, c.IsWords, c.Decisions = was.state, is.state, was.String(), is.String(), []decisionRow{}
	if c.Gone != "" {
		return c
	}
	wasFile, isFile := robotstxt.Parse([]byte(before), 0), robotstxt.Parse([]byte(after), 0)
	for _, tokens := range p.crawlers(wasFile, isFile) {
		for _, d := range history.Compare(wasFile, isFile, tokens, paths) {
			if len(c.Decisions) == maxChanged {
				c.More++
				continue
			}
			c.Decisions = append(c.Decisions, decisionRow{strings.Join(tokens, ", "), d.Path, was.decides(d.Was), is.decides(d.Is)})
		}
		c.restated(history.CompareUsage(wasFile, isFile, tokens, paths))
	}
	return c
}

// between returns a change without what it means, and the files before and after it. File returns the file of a phase.
func between(of clients, was, is phase, file func(phase) (string, error)) (c changeRow, before, after string) {
	c = changeRow{Time: is.at.UTC(), clients: of, Was: was.sha256, Is: is.sha256, Diff: []string{}, Usage: []decisionRow{}}
	before, err := file(was)
	after, err2 := file(is)
	switch {
	case err != nil || err2 != nil:
		c.Gone = "a file is not kept any more, or has been changed"
	case c.Was != "" && c.Is != "":
		c.Diff, c.DiffMore = history.Diff(c.Was[:12]+" "+console.UTC(was.from), before, c.Is[:12]+" "+console.UTC(is.from), after)
	}
	return c, before, after
}

// restated adds the changes of what is stated.
func (c *changeRow) restated(all []history.Restatement) {
	for _, r := range all {
		if len(c.Usage) == maxChanged {
			c.UsageMore++
			continue
		}
		c.Usage = append(c.Usage, decisionRow{strings.Join(r.Tokens, ", "), r.Path, history.StatedWords(r.Was), history.StatedWords(r.Is)})
	}
}

// rulesOf returns the file of a phase, or an equivalent file.
func (p *originHistory) rulesOf(v phase) (string, error) {
	switch {
	case v.sha256 != "":
		return p.archive.Body(v.sha256)
	case v.allow:
		return "", nil
	}
	return "User-agent: *\nDisallow: /\n", nil
}

// asked returns the crawler that --token and --agent name, if they name one.
func (p *originHistory) asked() (tokens []string, ok bool) {
	if token := policy.ProductToken(p.Agent); len(p.Token) == 0 && token != "" {
		return []string{token}, true
	}
	return p.Token, len(p.Token) > 0 || p.Agent != ""
}

// crawlers returns the crawlers to compare decisions for, by their product tokens.
func (p *originHistory) crawlers(was, is *robotstxt.File) (all [][]string) {
	if tokens, ok := p.asked(); ok {
		return [][]string{tokens}
	}
	for _, c := range p.config.Crawlers {
		if len(c.Tokens) > 0 {
			all = append(all, c.Tokens)
		}
	}
	if !p.anyToken() {
		return all
	}
	const most = 50
	for _, name := range history.Tokens(was, is, most) {
		same := func(k []string) bool { return len(k) > 0 && strings.EqualFold(k[0], name) }
		switch {
		case name == "":
			all = append(all, nil) // others
		case !slices.ContainsFunc(all, same):
			all = append(all, []string{name})
		}
	}
	return all
}

// anyToken reports whether a client may obey the product token of its User-Agent.
func (p *originHistory) anyToken() bool {
	return len(p.config.Crawlers) == 0 || p.config.UnknownClients == gate.AllowClients ||
		slices.ContainsFunc(p.config.Crawlers, func(c gate.Crawler) bool { return len(c.Tokens) == 0 })
}

// paths returns the paths of the origin in --url and --log.
func (p *originHistory) paths(s console.Streams) ([]string, error) {
	paths := map[string]bool{}
	for _, url := range p.URL {
		paths[robotstxt.PathOf(url)] = true
	}
	err := audit.Lines(p.Log, s.In, func(l *audit.Line) {
		if r := l.Entry; r != nil && r.Origin == p.origin && r.Path != "" && len(paths) < history.MaxPaths {
			paths[strings.Clone(r.Path)] = true
		}
	})
	return slices.Sorted(maps.Keys(paths)), err
}
