package bundle

import (
	"cmp"
	_ "embed"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
	"robotsgate/internal/replay"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// A report is what report.html and README.txt say of a bundle. Everything in it is bounded, also if the bundle has
// a million entries.
type report struct {
	audit.Summary
	Made
	Options
	Logs         []LogSummary
	MoreLogs     int
	Different    int
	Missing      []Named // entries without their evidence, by kind
	Chart        chart
	Crawlers     []audit.Named
	Gates        []audit.Named
	Sites        []audit.Named
	SiteCount    int
	Reasons      []audit.Named
	Rules        []ruleRow
	RuleCount    int
	Versions     []*version // of robots.txt and tdmrep.json, those in the report
	VersionCount int
	Others       []inForce // answers without a file
	OtherCount   int
	Stated       []audit.Stated
	Refused      []row // refused, or would have been
	MoreRefused  int   // of them that are not listed
	Rows         []row // the first entries

	days     map[string]*audit.Count
	versions map[string]*version // by digest
	lines    int                 // of all versions that have decided
}

// Bounds of the lists in a report.
const (
	maxRows       = 300
	maxRefused    = 300
	maxSites      = 50
	maxShownLogs  = 200
	maxRuleRows   = 50
	maxVersions   = 60
	maxOthers     = 100
	maxInForce    = 12
	maxUsed       = 100_000 // lines that have decided
	wholeFile     = 150     // lines: a longer file is shown around the lines that decided
	maxShownLines = 400
)

// Named is a count with a name.
type Named struct {
	Name  string
	Count int
}

// A row is an entry.
type row struct {
	*audit.Entry
	Number  int // line of records.jsonl
	Outcome string
	Why     string
	Link    string // to the line of robots.txt in the report; empty: it is not there
	digest  string
}

func newReport() *report {
	return &report{days: map[string]*audit.Count{}, versions: map[string]*version{}}
}

// entry takes an entry, with its line of records.jsonl.
func (p *report) entry(r *audit.Entry, number int) {
	p.Summary.Line(&audit.Line{Entry: r})
	o := outcomeOf(r)
	key := r.Time.UTC().Format(time.DateOnly)
	d := p.days[key]
	if d == nil {
		d = &audit.Count{}
		p.days[key] = d
	}
	d.Add(r)
	p.use(r)
	line := row{Entry: r, Number: number, Outcome: o, Why: strings.TrimSuffix(why(r), ": "+o)}
	if r.Robots != nil {
		line.digest = r.Robots.SHA256
	}
	if o != allowed && o != undecided {
		if len(p.Refused) < maxRefused {
			p.Refused = append(p.Refused, line)
		} else {
			p.MoreRefused++
		}
	}
	if len(p.Rows) < maxRows {
		p.Rows = append(p.Rows, line)
	}
}

// The outcomes of requests.
const (
	allowed   = "allowed"
	refused   = "refused"
	reported  = "would be refused"
	undecided = "no decision"
)

func outcomeOf(r *audit.Entry) string {
	switch {
	case r.Reported() && r.Refused == "":
		return reported
	case r.Refused != "" || r.Decision == "deny":
		return refused
	case r.Decision == "allow":
		return allowed
	}
	return undecided
}

// why says in words why a request was allowed or refused.
func why(r *audit.Entry) string {
	switch {
	case r.Refused != "":
		return reasonText(string(r.Refused))
	case r.Rule != "":
		return r.Rule
	case r.Note != "":
		return "the operator's rule: " + r.Note
	case r.Reserved != nil:
		return "reserved: " + r.Reserved.Use
	}
	return reasonText(string(r.Reason))
}

var reasonTexts = map[string]string{
	string(policy.ByRule):        "a line of robots.txt decided",
	string(policy.NoMatch):       "no line of robots.txt is about this address: allowed",
	string(policy.NoGroup):       "robots.txt has no group for this crawler: allowed",
	string(policy.Implicit):      "the request was for robots.txt itself: allowed",
	string(policy.ByOverride):    "a rule of the operator decided",
	string(policy.IsUnavailable): "the site has no robots.txt: allowed",
	string(policy.IsUnreachable): "robots.txt could not be fetched: refused",
	string(policy.TooComplex):    "robots.txt takes too many steps for this address: refused",
	string(policy.ByUsage):       "the site reserves this use of its content: refused",
	string(proxy.ByGuard):        "the address is one to which the operator sends nothing: refused",
	string(proxy.ByLogin):        "the client is none of the operator's crawlers: refused",
	string(proxy.ByLimit):        "a limit of the operator was reached: refused",
	string(proxy.ByBudget):       "the budget of requests was spent: refused",
	string(proxy.ByPace):         "its turn would have come too late: refused",
	string(proxy.ByAudit):        "the record could not be written: refused",
	string(proxy.IsMalformed):    "the request was malformed: refused",
}

func reasonText(name string) string { return cmp.Or(reasonTexts[name], name) }

// finish completes the report, after all entries.
func (p *report) finish(u *used, m *Made, o *Options) error {
	p.Made, p.Options, p.Logs = *m, *o, m.Logs[:min(maxShownLogs, len(m.Logs))]
	p.MoreLogs = len(m.Logs) - len(p.Logs)
	for _, outcome := range replay.Outcomes {
		n := m.Outcomes[outcome]
		switch {
		case n == 0:
		case outcome == replay.Different:
			p.Different = n
		case outcome.Gone() || outcome.Changed():
			p.Missing = append(p.Missing, Named{string(outcome), n})
		}
	}
	p.Chart = draw(p.days)
	p.Crawlers, p.Gates = p.Summary.Crawlers.Top(maxSites), p.Summary.Gates.Top(maxSites)
	p.Sites, p.SiteCount = p.Hosts.Top(maxSites), p.Hosts.Len()
	p.Reasons = p.Summary.Reasons.Top(math.MaxInt)
	p.Stated = p.Preferences.Top(maxSites)
	p.pickVersions()
	if err := u.answers(p.answer); err != nil {
		return err
	}
	slices.SortStableFunc(p.Versions, func(a, b *version) int {
		if c := strings.Compare(a.URL(), b.URL()); c != 0 || len(a.InForce) == 0 || len(b.InForce) == 0 {
			return c
		}
		return a.InForce[0].Time.Compare(b.InForce[0].Time)
	})
	for i, v := range p.Versions {
		v.Number = i + 1
		body, err := u.Evidence.Body(v.Digest)
		v.Gone = err != nil
		v.show(body)
	}
	p.pickRules()
	for i := range p.Refused {
		p.link(&p.Refused[i])
	}
	for i := range p.Rows {
		p.link(&p.Rows[i])
	}
	return nil
}

// Alike returns the number of entries that were decided again as they were recorded.
func (p *report) Alike() int { return p.Outcomes[replay.Same] }

// WithoutDecision returns the number of entries without a decision.
func (p *report) WithoutDecision() int { return p.Outcomes[replay.NoDecision] }

//go:embed report.html
var reportText string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"shown":  escape.Short,
	"utc":    utc,
	"day":    func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
	"clock":  func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
	"number": number,
	"reason": reasonText,
	"short":  func(s string) string { return s[:min(12, len(s))] },
	"slug":   strings.NewReplacer(" ", "-").Replace,
	"plural": func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return number(n) + " " + many
	},
}).Parse(reportText))
