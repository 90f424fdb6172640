package bundle

import (
	"cmp"
	_ "embed"
	"html/template"
	"maps"
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
// a million records.
type report struct {
	audit.Summary
	Made
	Options
	Logs         []LogSummary
	MoreLogs     int
	Different    int
	Missing      []Named // records without their evidence, by kind
	Chart        chart
	Crawlers     []audit.Named
	Gates        []audit.Named
	Sites        []audit.Named
	SiteCount    int
	Reasons      []reason
	Rules        []ruleRow
	RuleCount    int
	Versions     []*version // of robots.txt and tdmrep.json, those in the report
	VersionCount int
	Others       []inForce // answers without a file
	OtherCount   int
	Stated       []audit.Stated
	Refused      []row // refused, or would have been
	Rows         []row // the first records

	days     map[string]*day
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

// A row is a record.
type row struct {
	*audit.Record
	Number  int // line of records.jsonl
	Outcome string
	Why     string
	Link    string // to the line of robots.txt in the report; empty: it is not there
	digest  string
}

// A version is a file that decided.
type version struct {
	Number   int
	Digest   string
	Requests int
	Lines    []fileLine
	Total    int // lines of the file
	Gone     bool
	InForce  []inForce
	More     int // times in force that are left out
	TDMRep   bool
	used     map[int]*lineUse
	urls     map[string]bool
}

// URL returns where the file was, in the first place.
func (v *version) URL() string {
	if len(v.InForce) > 0 {
		return v.InForce[0].URL
	}
	return ""
}

// OtherURLs returns at how many other places it was.
func (v *version) OtherURLs() int { return max(0, len(v.urls)-1) }

// A fileLine is a line of a file, or a gap in place of lines that are left out.
type fileLine struct {
	Number int
	Text   string
	Gap    bool
	Use    *lineUse
}

// A lineUse counts the requests about which a line has decided.
type lineUse struct {
	Rule                       string
	Allowed, Refused, Reported int
}

// Count returns the number of requests.
func (u *lineUse) Count() int { return u.Allowed + u.Refused + u.Reported }

// A ruleRow is a line of a file that decided.
type ruleRow struct {
	*lineUse
	URL       string
	OtherURLs int
	Line      int
	Link      string
}

// An inForce is an answer of an origin.
type inForce struct {
	answer
	Clients string
}

// A reason is why requests were allowed or refused.
type reason struct {
	audit.Named
	Text string
}

func newReport() *report {
	return &report{days: map[string]*day{}, versions: map[string]*version{}}
}

// record takes a record, with its line of records.jsonl.
func (p *report) record(r *audit.Record, number int) {
	p.Summary.Line(&audit.Line{Record: r})
	o := outcomeOf(r)
	key := r.Time.UTC().Format(time.DateOnly)
	d := p.days[key]
	if d == nil {
		d = &day{}
		p.days[key] = d
	}
	d.add(o)
	p.use(r, o)
	line := row{Record: r, Number: number, Outcome: o, Why: strings.TrimSuffix(why(r), ": "+o)}
	if r.Robots != nil {
		line.digest = r.Robots.SHA256
	}
	if o != allowed && o != undecided && len(p.Refused) < maxRefused {
		p.Refused = append(p.Refused, line)
	}
	if len(p.Rows) < maxRows {
		p.Rows = append(p.Rows, line)
	}
}

// use counts the line that decided.
func (p *report) use(r *audit.Record, o string) {
	if r.TDMRep != "" {
		v := p.version(r.TDMRep)
		v.TDMRep = true
		v.Requests++
	}
	if r.Robots == nil || r.Robots.SHA256 == "" {
		return
	}
	v := p.version(r.Robots.SHA256)
	v.Requests++
	line, rule := r.Line, r.Rule
	if by := r.Reserved; by != nil && by.Line > 0 {
		line, rule = by.Line, by.Use+"="+by.Value
	}
	if line <= 0 {
		return
	}
	u := v.used[line]
	if u == nil {
		if p.lines == maxUsed {
			return
		}
		p.lines++
		u = &lineUse{Rule: rule}
		v.used[line] = u
	}
	switch o {
	case allowed:
		u.Allowed++
	case reported:
		u.Reported++
	default:
		u.Refused++
	}
}

func (p *report) version(digest string) *version {
	v := p.versions[digest]
	if v == nil {
		v = &version{Digest: digest, used: map[int]*lineUse{}, urls: map[string]bool{}}
		p.versions[digest] = v
	}
	return v
}

// The outcomes of requests.
const (
	allowed   = "allowed"
	refused   = "refused"
	reported  = "would be refused"
	undecided = "no decision"
)

func outcomeOf(r *audit.Record) string {
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
func why(r *audit.Record) string {
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
	string(proxy.ByPace):         "its turn would have come too late: refused",
	string(proxy.ByAudit):        "the record could not be written: refused",
	string(proxy.IsMalformed):    "the request was malformed: refused",
}

func reasonText(name string) string { return cmp.Or(reasonTexts[name], name) }

// finish completes the report, after all records.
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
	for _, named := range p.Summary.Reasons.Top(math.MaxInt) {
		p.Reasons = append(p.Reasons, reason{named, reasonText(named.Name)})
	}
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

// pickVersions chooses the versions that the report shows: those with the most requests.
func (p *report) pickVersions() {
	p.VersionCount = len(p.versions)
	p.Versions = slices.SortedFunc(maps.Values(p.versions), func(a, b *version) int {
		return cmp.Or(b.Requests-a.Requests, strings.Compare(a.Digest, b.Digest))
	})
	for _, v := range p.Versions[min(maxVersions, len(p.Versions)):] {
		delete(p.versions, v.Digest)
	}
	p.Versions = p.Versions[:min(maxVersions, len(p.Versions))]
}

// answer takes an answer of an origin.
func (p *report) answer(a answer) error {
	in := inForce{a, "all clients"}
	if a.Crawlers {
		in.Clients = "crawlers"
	}
	if a.Token != "" {
		in.Clients = a.Token
	}
	v := p.versions[a.SHA256]
	if v != nil {
		v.urls[a.URL] = true
	}
	switch {
	case a.SHA256 == "":
		if p.OtherCount++; len(p.Others) < maxOthers {
			p.Others = append(p.Others, in)
		}
	case v == nil:
	case len(v.InForce) < maxInForce:
		v.InForce = append(v.InForce, in)
	default:
		v.More++
	}
	return nil
}

// pickRules lists the lines with the most requests.
func (p *report) pickRules() {
	for _, v := range p.Versions {
		p.RuleCount += len(v.used)
		for line, u := range v.used {
			p.Rules = append(p.Rules, ruleRow{u, v.URL(), v.OtherURLs(), line, v.link(line)})
		}
	}
	slices.SortFunc(p.Rules, func(a, b ruleRow) int {
		return cmp.Or(b.Count()-a.Count(), strings.Compare(a.URL, b.URL), a.Line-b.Line)
	})
	p.Rules = p.Rules[:min(maxRuleRows, len(p.Rules))]
}

func (p *report) link(r *row) {
	v := p.versions[r.digest]
	if v == nil || r.Reason == policy.ByOverride { // no line of the site decided
		return
	}
	line := r.Line
	if by := r.Reserved; by != nil && by.Line > 0 {
		line = by.Line
	}
	r.Link = v.link(line)
}

// Alike returns the number of records that were decided again as they were recorded.
func (p *report) Alike() int { return p.Outcomes[replay.Same] }

// WithoutDecision returns the number of records without a decision.
func (p *report) WithoutDecision() int { return p.Outcomes[replay.NoDecision] }

//go:embed report.html
var reportText string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"shown":  escape.Short,
	"utc":    utc,
	"day":    func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
	"clock":  func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
	"number": number,
	"short":  func(s string) string { return s[:min(12, len(s))] },
	"slug":   strings.NewReplacer(" ", "-").Replace,
	"plural": func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return number(n) + " " + many
	},
}).Parse(reportText))

// MoreRefused returns the number of refused records that are not listed.
func (p *report) MoreRefused() int { return max(0, p.Denied+p.Summary.Reported-len(p.Refused)) }
