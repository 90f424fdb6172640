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
	// lines costs for every request. The list for robots.txt is the same with and without a response, so that a
	// replay can compare it.
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

	labels []string          // of those that are not in the table categories, the first maxLabels in byte order
	listed map[statedKey]int // number of preferences; without a category and a value: for a place
}

type statedKey struct {
	in              Place
	category, value string
}

func newCollector(in *Input) *collector { return &collector{in: *in, listed: map[statedKey]int{}} }

// places are all places, in the order in which preferences are listed.
var places = []Place{InRobots, InHeader, InMeta, InWellKnown}

// stated returns what has been gathered.
func (c *collector) stated() Stated {
	c.preferences = slices.DeleteFunc(c.preferences, func(p Preference) bool { return !c.lists(p.Category) })
	slices.SortStableFunc(c.preferences, func(a, b Preference) int {
		return cmp.Compare(slices.Index(places, a.In), slices.Index(places, b.In))
	})
	return Stated{Preferences: c.preferences, Licenses: c.licenses}
}

// lists reports whether a category is listed: it is one of ours, or among the first of the others.
func (c *collector) lists(category string) bool {
	_, found := slices.BinarySearch(c.labels, category)
	return found || isOurs(category)
}

func isOurs(label string) bool {
	_, ours := categories[label]
	return ours || label == LevelCategory
}

// state adds what a statement says about each of its labels.
func (c *collector) state(s *statement, source Source, in Place, line int) {
	for _, label := range s.labels {
		i, found := slices.BinarySearch(c.labels, label)
		if s.values[label] != unknown && !found && i < maxLabels && !isOurs(label) {
			c.labels = slices.Insert(c.labels, i, strings.Clone(label)) // does not keep the whole line in memory
			c.labels = c.labels[:min(len(c.labels), maxLabels)]
		}
	}
	for _, label := range s.labels {
		p := Preference{Source: source, In: in, Line: line}
		switch v := s.values[label]; {
		case v == unknown || !c.lists(label):
			continue
		case v > no:
			p.Category, p.Level = LevelCategory, Level(signalValues[v])
		default:
			p.Category, p.Allowed = cmp.Or(categories[label], label), v == yes
		}
		c.prefer(p)
	}
}

// prefer adds a preference unless there is an equal one.
func (c *collector) prefer(p Preference) {
	place, stated := statedKey{in: p.In}, statedKey{p.In, p.Category, p.Value()}
	if c.listed[place] < maxPreferences {
		if slices.Contains(c.preferences, p) {
			return
		}
	} else if c.listed[stated] > 0 {
		return
	}
	p.Category = strings.Clone(p.Category)
	c.preferences = append(c.preferences, p)
	c.listed[place]++
	c.listed[stated]++
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
