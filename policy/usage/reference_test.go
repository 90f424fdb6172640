package usage_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// A question is what a site states, as a structure. Its text and the expected answer are both made
// from it, so that the reference parses nothing.
type question struct {
	path  string
	lines []robotsLine // of robots.txt, in order

	usage   []dictionary // lines of the Content-Usage header
	signal  []list       // lines of the Content-Signal header
	tdm     []string     // lines of the tdm-reservation header
	tags    []string     // lines of X-Robots-Tag, a word each
	metaTDM []string     // metas
	metaTag []string
	links   []license // Link header lines
	inHead  []license // links of the head
	policy  license   // tdm-policy header

	file    []entry // of tdmrep.json
	hasFile bool
}

type robotsLine struct {
	name string // user-agent, allow, disallow, content-usage, content-signal, license; otherwise it is noise
	text string // the value, for all but the next two
	path string // of content-usage and content-signal; may be empty
	dictionary
	list
	license
}

// A member of a dictionary or a list. Value is y, n, or a level, or empty for one that states nothing.
type member struct{ label, category, value, text string }

type dictionary struct {
	members []member
	broken  bool // it is no dictionary
}

type list struct{ members []member }

type license struct {
	url  string
	good bool
}

type entry struct {
	location, value string // 1, 0, or empty for an entry that is passed over
	policy          string
}

var labels = map[string]string{
	"train-ai": "train-ai", "ai-train": "train-ai", "ai-input": "ai-input", "ai-use": "ai-input", "search": "search", "tdm": "tdm", "bots": "bots", "genai": "genai", "*": "*", "use": "use",
}

// strength orders values of a category: of several the strongest counts.
var strength = map[string]int{"y": 1, "n": 2, "full": 1, "reference": 2, "immediate": 3}

var labelNames = slices.Sorted(maps.Keys(labels))

type asker struct{ *rand.Rand }

func pick[T any](a asker, of ...T) T { return of[a.IntN(len(of))] }

// some returns 0 to n values, mostly few.
func some[T any](a asker, n int, f func() T) (all []T) {
	for range min(a.IntN(n+1), a.IntN(n+1)) {
		all = append(all, f())
	}
	return all
}

func (a asker) dictionary() dictionary {
	d := dictionary{broken: a.IntN(8) == 0}
	for range 1 + a.IntN(3) {
		m := member{label: pick(a, labelNames...)}
		m.category = labels[m.label]
		switch a.IntN(8) {
		case 0: // another type, which leaves the label unknown
			m.text = m.label + pick(a, "=?1", "=?0", "=\"n\"", "=7", "=1.5", "=@1659578233", "=:bg==:", "=(n y)", "", ";n", "=no", "=N", "=%\"n\"")
		default:
			m.value = pick(a, "y", "n")
			m.text = m.label + "=" + m.value + pick(a, "", "", ";x", ";x=1;y=\"a\"")
			if m.label == "use" {
				m.value = ""
			}
		}
		d.members = append(d.members, m)
	}
	return d
}

func (a asker) dictionaryText(d dictionary) string {
	var parts []string
	for _, m := range d.members {
		parts = append(parts, m.text)
	}
	text := strings.Join(parts, pick(a, ",", ", ", " ,\t"))
	if d.broken {
		text = pick(a, text+",", "Train-ai=n, "+text, text+" x", text+", a =n", text+", search=\xc3\xa9", text+";;", text+", =n", text+`, a="\x`)
	}
	return text
}

// stated returns what the members of all dictionaries, as one, state: the last one of a key counts.
func stated(ds []dictionary) (all []member) {
	last := map[string]member{}
	for _, d := range ds {
		if d.broken {
			return nil
		}
		for _, m := range d.members {
			last[m.label] = m
		}
	}
	for _, label := range slices.Sorted(maps.Keys(last)) {
		if m := last[label]; m.value != "" {
			all = append(all, m)
		}
	}
	return all
}

func (a asker) list() (l list) {
	for range 1 + a.IntN(3) {
		m := member{label: pick(a, labelNames...)}
		m.category = labels[m.label]
		name := pick(a, m.label, strings.ToUpper(m.label), " "+m.label+"\t")
		switch n := a.IntN(5); {
		case m.label == "use":
			m.value = pick(a, "full", "reference", "immediate", "")
			m.text = name + "=" + pick(a, m.value, strings.ToUpper(m.value))
		case n == 0:
			m.text = name + "=" + pick(a, "y", "n", "true", "\"no\"", "no; x=yes", "reference", "")
		default:
			m.value = pick(a, "y", "n")
			m.text = name + pick(a, "=", " = ") + map[string]string{"y": pick(a, "yes", "YES"), "n": pick(a, "no", "No")}[m.value]
		}
		l.members = append(l.members, m)
	}
	return l
}

func (l list) text() string {
	var parts []string
	for _, m := range l.members {
		parts = append(parts, m.text)
	}
	return strings.Join(parts, ",")
}

// stated returns what a list states: of a repeated label the strongest value counts.
func (l list) stated() []member {
	var all []member
	for _, m := range l.members {
		if m.value != "" && (!slices.ContainsFunc(l.members, func(o member) bool { return o.label == m.label && strength[o.value] > strength[m.value] })) {
			all = append(all, m)
		}
	}
	return all
}

func (a asker) license() license {
	if a.IntN(4) == 0 {
		return license{pick(a, "/license.xml", "license.xml", "ftp://site.test/l.xml", "//site.test/l.xml", "https:///l.xml", "mailto:x@site.test"), false}
	}
	return license{fmt.Sprintf("%s://site.test/%d.xml", pick(a, "https", "http"), a.IntN(6)), true}
}

func (a asker) pattern() string {
	return pick(a, "/", "/a", "/a/", "/a/b", "/a/b/c", "/*", "/*b", "/a/*c", "/a/b$", "/a/b/c$", "/*$", "/b", "/a*/c", "/x", "*", "*b", "/a/b?q")
}

func (a asker) robots() (lines []robotsLine) {
	for range a.IntN(14) {
		l := robotsLine{name: pick(a, "user-agent", "user-agent", "allow", "disallow", "content-usage", "content-usage", "content-usage",
			"content-signal", "content-signal", "license", "sitemap", "crawl-delay")}
		switch l.name {
		case "user-agent":
			l.text = pick(a, "*", "ExampleBot", "OtherBot", "examplebot", "*")
		case "allow":
			l.text = a.pattern()
		case "disallow":
			l.text = pick(a, a.pattern(), "/x", "/b", "/a/b/c$")
		case "content-usage", "content-signal":
			if a.IntN(2) == 0 {
				l.path = pick(a, "/", "/a", "/a/", "/a/b", "/a/b/c", "/*", "/*b", "/a/*c", "/a/b$", "/*$", "/b")
			}
			if l.name == "content-usage" {
				l.dictionary = a.dictionary()
				l.text = a.dictionaryText(l.dictionary)
			} else {
				l.list = a.list()
				l.text = strings.TrimLeft(l.list.text(), " \t")
			}
			if l.path != "" {
				l.text = l.path + pick(a, " ", "\t", "  ") + l.text
			}
		case "license":
			l.license = a.license()
			l.text = l.url
		case "sitemap":
			l.text = "https://site.test/map.xml"
		case "crawl-delay":
			l.text = "1"
		}
		lines = append(lines, l)
	}
	return lines
}

func (a asker) robotsText(lines []robotsLine) string {
	var b strings.Builder
	for _, l := range lines {
		name := pick(a, l.name, strings.ToUpper(l.name))
		fmt.Fprintf(&b, "%s%s:%s%s%s%s", pick(a, "", " "), name, pick(a, "", " ", "\t "), l.text, pick(a, "", " ", " # train-ai=n"), pick(a, "\n", "\r\n", "\r"))
	}
	return b.String()
}

func (a asker) question() question {
	q := question{path: pick(a, "/", "/a", "/a/", "/a/b", "/a/b/c", "/a/b?q=1", "/b", "/zb", "/a/x/c"), lines: a.robots()}
	q.usage = some(a, 2, a.dictionary)
	q.signal = some(a, 2, a.list)
	q.tdm = some(a, 2, func() string { return pick(a, "1", "0", " 1 ", "2", "", "true") })
	q.metaTDM = some(a, 2, func() string { return pick(a, "1", "0", "\n0 ", "yes", "01") })
	q.tags = some(a, 2, func() string {
		return pick(a, "noai", "noimageai", "noml", "noindex", "ExampleBot: noai", "OtherBot: noai", "none")
	})
	q.metaTag = some(a, 2, func() string { return pick(a, "noai", "NOAI, noindex", "noimageai", "nofollow") })
	q.links = some(a, 3, a.license)
	q.inHead = some(a, 3, a.license)
	if a.IntN(3) == 0 {
		q.policy = a.license()
	}
	q.hasFile = a.IntN(2) == 0
	q.file = some(a, 3, func() entry {
		e := entry{location: pick(a, "/", "/a", "/a/b$", "/*b", "*", "/b", "a/b", ""), value: pick(a, "0", "1")}
		if a.IntN(4) == 0 {
			e.policy = fmt.Sprintf("https://site.test/policy%d", a.IntN(3))
		}
		if !strings.HasPrefix(e.location, "/") && e.location != "*" {
			e.value = ""
		}
		return e
	})
	return q
}

func (a asker) fileText(entries []entry) string {
	all := []map[string]any{}
	for _, e := range entries {
		m := map[string]any{"location": e.location, "tdm-reservation": pick[any](a, 1, "1")}
		switch e.value {
		case "0":
			m["tdm-reservation"] = pick[any](a, 0, "0")
		case "":
			m["tdm-reservation"] = pick[any](a, 1, 0)
		}
		if e.policy != "" {
			m["tdm-policy"] = e.policy
		}
		all = append(all, m)
	}
	text, _ := json.Marshal(all)
	return string(text)
}

// matches compares a pattern and a path, as RFC 9309, 2.2.3 says.
func matches(pattern, path string) bool {
	if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "*") {
		return false
	}
	end := strings.HasSuffix(pattern, "$")
	parts := strings.Split(strings.TrimSuffix(pattern, "$"), "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	text := "^" + strings.Join(parts, ".*")
	if end {
		text += "$"
	}
	return regexp.MustCompile(text).MatchString(path)
}

// An answer is what is expected, and what is compared.
type answer struct {
	Values   map[string]string
	Detail   []usage.Preference
	Licenses []string
}

// binding returns the lines that bind ExampleBot, with their numbers, and those before any User-agent line. A rule
// binds the names of its group, any other line those directly above it.
func (q *question) binding() (binding, before map[int]robotsLine) {
	before = map[int]robotsLine{}
	bound := map[string]map[int]robotsLine{} // by name
	var group, above []string
	grouped, directly := false, false // a further User-agent line belongs to group, and to above
	for i, l := range q.lines {
		rule := l.name == "allow" || l.name == "disallow"
		if l.name == "user-agent" {
			if !grouped {
				group = nil
			}
			if !directly {
				above = nil
			}
			name := strings.ToLower(l.text)
			group, above = append(group, name), append(above, name)
			grouped, directly = true, true
			if bound[name] == nil {
				bound[name] = map[int]robotsLine{}
			}
			continue
		}
		grouped, directly = grouped && !rule, false
		names := above
		if rule {
			names = group
		}
		if len(names) == 0 {
			before[i+1] = l
		}
		for _, name := range names {
			bound[name][i+1] = l
		}
	}
	for _, name := range []string{"examplebot", "*"} {
		if lines, ok := bound[name]; ok {
			return lines, before
		}
	}
	return nil, before
}

func (q *question) answer() answer {
	a := answer{Values: map[string]string{}}
	state := func(ms []member, source usage.Source, in usage.Place, line int) {
		for _, m := range ms {
			p := usage.Preference{Category: m.category, Allowed: m.value == "y", Source: source, In: in, Line: line}
			if m.category == "use" {
				p.Level = usage.Level(m.value)
			}
			if !slices.Contains(a.Detail, p) {
				a.Detail = append(a.Detail, p)
			}
			if strength[m.value] > strength[a.Values[m.category]] {
				a.Values[m.category] = m.value
			}
		}
	}
	offer := func(l license) {
		if l.good && !slices.Contains(a.Licenses, l.url) {
			a.Licenses = append(a.Licenses, l.url)
		}
	}

	group, before := q.binding()
	denied, longest := false, -1
	for _, l := range group {
		if l.name != "allow" && l.name != "disallow" || !matches(l.text, q.path) {
			continue
		}
		if n := len(l.text); n > longest || n == longest && l.name == "allow" {
			denied, longest = l.name == "disallow", n
		}
	}
	if !denied {
		for _, name := range []string{"content-usage", "content-signal"} {
			longest := -1
			applies := func(l robotsLine) bool {
				if l.name != name || l.path != "" && !matches(l.path, q.path) {
					return false
				}
				if name == "content-usage" {
					return !l.broken
				}
				// A member of the form label=value makes it a rule, whatever the value is.
				return true
			}
			for _, l := range group {
				if applies(l) {
					longest = max(longest, len(l.path))
				}
			}
			for _, line := range slices.Sorted(maps.Keys(group)) {
				l := group[line]
				if !applies(l) || len(l.path) != longest {
					continue
				}
				if name == "content-usage" {
					state(stated([]dictionary{l.dictionary}), usage.ContentUsage, usage.InRobots, line)
				} else {
					state(l.list.stated(), usage.ContentSignal, usage.InRobots, line)
				}
			}
		}
	}
	state(stated(q.usage), usage.ContentUsage, usage.InHeader, 0)
	for _, l := range q.signal {
		state(l.stated(), usage.ContentSignal, usage.InHeader, 0)
	}
	for _, t := range q.tags {
		if slices.Contains([]string{"noai", "noimageai", "noml", "ExampleBot: noai"}, t) {
			state([]member{{category: "train-ai", value: "n"}}, usage.RobotsTag, usage.InHeader, 0)
		}
	}
	for _, t := range q.metaTag {
		if strings.Contains(strings.ToLower(t), "ai") {
			state([]member{{category: "train-ai", value: "n"}}, usage.RobotsTag, usage.InMeta, 0)
		}
	}

	reservation := func(values []string) string {
		for _, want := range []string{"1", "0"} {
			if slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == want }) {
				return want
			}
		}
		return ""
	}
	var inFile entry
	if q.hasFile {
		for _, e := range q.file {
			if e.value != "" && matches(e.location, q.path) {
				inFile = e
				break
			}
		}
	}
	reserved := ""
	for _, place := range []struct {
		in    usage.Place
		value string
	}{{usage.InMeta, reservation(q.metaTDM)}, {usage.InHeader, reservation(q.tdm)}, {usage.InWellKnown, inFile.value}} {
		if place.value != "" {
			reserved = place.value
			state([]member{{category: "tdm", value: map[string]string{"1": "n", "0": "y"}[place.value]}}, usage.TDMRep, place.in, 0)
			break
		}
	}

	own := false
	for _, line := range slices.Sorted(maps.Keys(group)) {
		if l := group[line]; l.name == "license" && l.good {
			own = true
			offer(l.license)
		}
	}
	if !own {
		for _, line := range slices.Sorted(maps.Keys(before)) {
			if l := before[line]; l.name == "license" {
				offer(l.license)
			}
		}
	}
	for _, l := range slices.Concat(q.links, q.inHead) {
		offer(l)
	}
	if reserved == "1" {
		if q.policy.good {
			offer(q.policy)
		} else if inFile.policy != "" {
			offer(license{inFile.policy, true})
		}
	}
	return a
}

// input is the question as text, read by the parsers that the gate uses.
func (a asker) input(t *testing.T, q question) *usage.Input {
	f := robotstxt.Parse([]byte(a.robotsText(q.lines)), 0)
	v := f.Decide(q.path, "ExampleBot")
	in := &usage.Input{Robots: f, Group: v.Group, Path: q.path, Denied: !v.Allowed, Header: http.Header{}}
	for _, d := range q.usage {
		in.Header.Add("Content-Usage", a.dictionaryText(d))
	}
	for _, l := range q.signal {
		in.Header.Add("Content-Signal", l.text())
	}
	for _, v := range q.tdm {
		in.Header.Add("Tdm-Reservation", v)
	}
	if q.policy.url != "" {
		in.Header.Set("Tdm-Policy", q.policy.url)
	}
	var tags []robotstag.Tags
	tags = append(tags, robotstag.ParseHeader(nil, q.tags))
	for _, v := range q.metaTag {
		tags = append(tags, robotstag.ParseMeta("robots", v))
	}
	in.Tags = robotstag.Union(tags...).For("ExampleBot")
	for _, l := range q.links {
		in.Header.Add("Link", fmt.Sprintf("<%s>; rel=%s; type=\"application/%s\"", l.url, pick(a, "license", `"LICENSE next"`), pick(a, "rsl+xml", "RSL+XML;v=1")))
		if a.IntN(3) == 0 {
			in.Header.Add("Link", pick(a, "<https://other.test/cc>; rel=license", `<https://other.test/x>; rel=next; type="application/rsl+xml"`,
				`<https://other.test/x>; rel=license; type="application/rsl+xml"; anchor="/x"`))
		}
	}
	var head strings.Builder
	for _, v := range q.metaTDM {
		fmt.Fprintf(&head, "<meta name=%q content=\"%s\">", pick(a, "tdm-reservation", "TDM-Reservation"), v)
	}
	for _, l := range q.inHead {
		fmt.Fprintf(&head, "<link rel=%q type=%q href=%q>", pick(a, "license", "x License"), "application/rsl+xml", l.url)
		if a.IntN(3) == 0 {
			head.WriteString("<link rel=license href=https://other.test/cc>")
		}
	}
	result, err := htmlmeta.Scan(strings.NewReader("<!doctype html><head>"+head.String()+"</head><body>"), htmlmeta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in.Metas, in.Links = result.Metas, result.Links
	if q.hasFile {
		if in.TDMRep, err = usage.ParseTDMRep([]byte(a.fileText(q.file))); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// TestReference compares random questions with answers that are made without parsing.
func TestReference(t *testing.T) {
	a := asker{gatetest.Random(t)}
	some := 0
	for range gatetest.Size(5_000, 20_000) {
		q := a.question()
		in := a.input(t, q)
		s := usage.Read(in)
		got := answer{s.Values(), slices.Clone(s.Preferences), s.URLs()}
		want := q.answer()
		if len(want.Detail) > 0 {
			some++
		}
		for _, d := range []*answer{&got, &want} {
			slices.SortFunc(d.Detail, func(a, b usage.Preference) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v\nquestion %+v\ninput %+v", got, want, q, in)
			return
		}
	}
	if some == 0 {
		t.Error("no question states anything")
	}
}
