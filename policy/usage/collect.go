package usage

import (
	"cmp"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt"
)

// Bounds on what is listed.
const (
	maxLabels   = 16 // labels that are not in the table categories, the first in byte order
	maxLabel    = 64 // bytes
	maxLicenses = 16
	maxURL      = 2048 // bytes

	// maxPreferences bounds the preferences listed for a place. Beyond it, a preference is listed only if the
	// list has none with the same category and value from that place. It bounds what a robots.txt of thousands of
	// lines costs for every request, and the size of its entry in the audit log: some 8 KB. The list for
	// robots.txt is the same with and without a response, so that a replay can compare it.
	maxPreferences = 100
)

// A collector gathers what the signals state about the Input.
type collector struct {
	in      Input
	matcher *robotstxt.PathMatcher // of in.Path; nil until it is needed

	preferences []Preference
	licenses    []License

	force     []line    // of linesInForce, used again for each signal
	statement statement // used again for each line and field

	// labels has the first maxLabels in byte order of the labels that are not in the table categories. If
	// there are more, they are known only at the end, and the signals are read a second time: this bounds the
	// memory.
	labels        []string
	tooManyLabels bool
	labelsChosen  bool // labels is what an earlier reading has found

	counts [4]int             // of preferences, by place
	listed map[listedKey]bool // from maxPreferences on
}

type listedKey struct {
	in              Place
	category, value string
}

func newCollector(in *Input) *collector {
	c := &collector{in: *in}
	c.statement.lists = c.mayList
	return c
}

func (p *Preference) key() listedKey { return listedKey{p.In, p.Category, p.Value()} }

func (c *collector) readAll() {
	for _, read := range signals {
		read(c)
	}
}

// stated returns what has been gathered.
func (c *collector) stated() Stated {
	slices.SortStableFunc(c.preferences, func(a, b Preference) int {
		return cmp.Compare(slices.Index(places, a.In), slices.Index(places, b.In))
	})
	return Stated{Preferences: c.preferences, Licenses: c.licenses}
}

// places are all places, in the order in which preferences are listed.
var places = []Place{InRobots, InHeader, InMeta, InWellKnown}

// state adds what a statement says about each of its labels.
func (c *collector) state(s *statement, source Source, in Place, line int) {
	for _, m := range s.members {
		if m.value == unknown {
			continue
		}
		if m.value > no {
			c.prefer(Preference{LevelCategory, false, Level(signalValues[m.value]), source, in, line})
			continue
		}
		category, ours := categories[m.label]
		if !ours {
			if category = c.otherLabel(m.label); category == "" {
				continue
			}
		}
		c.prefer(Preference{category, m.value == yes, "", source, in, line})
	}
}

// prefer adds a preference unless there is an equal one. It compares only the last ones of the same source,
// place and line, since the preferences of a line are added one after the other.
func (c *collector) prefer(p Preference) {
	for i := len(c.preferences) - 1; i >= 0; i-- {
		q := &c.preferences[i]
		if q.Source != p.Source || q.In != p.In || q.Line != p.Line {
			break
		}
		if *q == p {
			return
		}
	}
	place := slices.Index(places, p.In)
	if c.counts[place] >= maxPreferences && c.isListed(&p) {
		return
	}
	if c.preferences == nil {
		c.preferences = make([]Preference, 0, fewMembers) // as most sites need
	}
	c.preferences = append(c.preferences, p)
	c.counts[place]++
	if c.listed != nil {
		c.listed[p.key()] = true
	}
}

// isListed reports whether a preference in the list says the same about the category, in the same place.
func (c *collector) isListed(p *Preference) bool {
	if c.listed == nil {
		c.listed = map[listedKey]bool{}
		for i := range c.preferences {
			c.listed[c.preferences[i].key()] = true
		}
	}
	return c.listed[p.key()]
}

// otherLabel returns the category of a label that is not in the table: the label itself, or "" if it
// is not listed.
func (c *collector) otherLabel(label string) (category string) {
	if len(label) > maxLabel {
		return ""
	}
	i, found := slices.BinarySearch(c.labels, label)
	switch {
	case found:
		return c.labels[i]
	case c.labelsChosen, i == maxLabels:
		return ""
	}
	label = strings.Clone(label) // does not keep the whole line in memory
	c.labels = slices.Insert(c.labels, i, label)
	if len(c.labels) > maxLabels {
		c.labels = c.labels[:maxLabels]
		c.tooManyLabels = true
	}
	if c.tooManyLabels {
		return "" // the signals will be read again
	}
	return label
}

// mayList reports whether a label may be listed: it names a category of ours, or is among the first of the
// others as far as these are known. A line may have thousands of labels.
func (c *collector) mayList(label string) bool {
	if _, ours := categories[label]; ours || label == LevelCategory {
		return true
	}
	i, found := slices.BinarySearch(c.labels, label)
	return found || i < maxLabels && !c.labelsChosen
}

// license adds a licence, and reports whether its URL can be read.
func (c *collector) license(l License) bool {
	if !ReadableLicense(l.URL) {
		return false
	}
	same := func(o License) bool { return o.URL == l.URL }
	if len(c.licenses) < maxLicenses && !slices.ContainsFunc(c.licenses, same) {
		l.URL = strings.Clone(l.URL)
		c.licenses = append(c.licenses, l)
	}
	return true
}

// ReadableLicense reports whether the URL of a licence or of a TDM policy is listed: it is absolute,
// http or https, with a host, of bytes that a URL may have, and at most 2,048 bytes long.
func ReadableLicense(url string) bool {
	scheme, rest, found := strings.Cut(url, "://")
	if !found || len(url) > maxURL || !equalFold(scheme, "http") && !equalFold(scheme, "https") {
		return false
	}
	for i := range len(url) {
		if c := url[i]; c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return false
		}
	}
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	return host != "" && host[0] != ':' // a port alone is no host
}

// equalFold compares with a text in ASCII, ignoring the case of A to Z only: a letter outside ASCII
// that strings.EqualFold takes for one of them has more bytes.
func equalFold(s, ascii string) bool { return len(s) == len(ascii) && strings.EqualFold(s, ascii) }
