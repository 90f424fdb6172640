package bundle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"robotsgate/internal/audit"
	"robotsgate/policy"
)

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
	audit.Count
	Rule string
}

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

// use counts the line that decided.
func (p *report) use(r *audit.Entry) {
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
	u.Add(r)
}

func (p *report) version(digest string) *version {
	v := p.versions[digest]
	if v == nil {
		v = &version{Digest: digest, used: map[int]*lineUse{}, urls: map[string]bool{}}
		p.versions[digest] = v
	}
	return v
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
	in := inForce{a, a.Asker}
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
		return cmp.Or(b.Requests-a.Requests, strings.Compare(a.URL, b.URL), a.Line-b.Line)
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
