package auditreport

import (
	"slices"
	"strings"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/field"
	"robotsgate/internal/gate"
	"robotsgate/policy"
)

// A suggestReport prints overrides that permit what is in the logs.
type suggestReport struct {
	audit.Suggestions
	s       console.Streams
	several bool // crawlers are configured
	invalid invalidLines
}

func (a *Options) suggestReport(c *gate.Config, s console.Streams) *suggestReport {
	r := &suggestReport{s: s}
	// A selection of refused requests is meant to permit some of them.
	r.Depth, r.Refused = a.Paths, a.Filter.Denied || a.Filter.Reason != "" || a.Filter.ID != ""
	if c.File() == "" {
		return r // the crawlers of the gate are not known
	}
	crawlers := gate.Crawlers(c)
	r.several = len(crawlers.Known) > 0
	r.Knows = func(name string) bool {
		k := crawlers.Named(name)
		return k != nil && (k != crawlers.Default || !crawlers.RefuseUnknown)
	}
	return r
}

func (t *suggestReport) Line(l *audit.Line) {
	t.invalid.add(l)
	if l.Entry != nil {
		t.Entry(l.Entry)
	}
}

// A permission is the result for one refused request.
type permission struct {
	entryText
	audit.SuggestedOverride
}

// A suggestion is the result of a suggestReport.
type suggestion struct {
	*audit.Suggestions
	Overrides []audit.SuggestedOverride
}

func (t *suggestReport) result() (string, any, bool) {
	t.invalid.warn(t.s)
	if r, o := t.Permission(); o != nil {
		suggested := audit.SuggestedOverride{Hosts: []string{o.Hosts[0].String()}, Paths: o.Paths, Methods: o.Methods, Crawlers: o.Crawlers}
		return "permission", permission{entryText{Entry: r}, suggested}, false
	}
	all := t.Overrides()
	if len(all) == 0 {
		t.s.Warn("no request in the logs was sent, so that only the denial of all others is left: let the gate run with mode: report for a while")
	}
	// Without crawlers in the configuration there is the default one, which need not be named.
	only := []string{policy.DefaultCrawler().Name}
	if !t.several && !slices.ContainsFunc(all, func(o audit.SuggestedOverride) bool { return !slices.Equal(o.Crawlers, only) }) {
		for i := range all {
			all[i].Crawlers = nil
		}
	}
	return "overrides", suggestion{&t.Suggestions, all}, len(all) == 0
}

// yamlList returns a list in one line, or in one line for each text.
func yamlList(all []string) string {
	const most = 4
	var b strings.Builder
	for i, text := range all {
		switch {
		case len(all) > most:
			b.WriteString("\n  - ")
		case i == 0:
			b.WriteString(" [")
		default:
			b.WriteString(", ")
		}
		b.WriteString(field.Quote(text))
	}
	if len(all) <= most {
		b.WriteString("]")
	}
	return b.String()
}
