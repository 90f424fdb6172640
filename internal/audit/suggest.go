package audit

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
)

// Suggestions collects the overrides that permit again what the gate has sent. Requests that were
// refused or failed are left out: a client must not get a host into the list by requesting it.
type Suggestions struct {
	Depth   int                       // how many segments of paths are told apart; 0: overrides are for all paths
	Refused bool                      // include what an override has refused
	Knows   func(crawler string) bool // nil: all crawlers are known

	Span         // of the requests that the overrides permit
	Requests int // that the overrides permit
	Rules    int // of these, requests that robots.txt denies, as before
	Widened  int // pairs of a crawler and a host with so many paths that all paths are permitted

	// Requests that the overrides do not permit.
	Denied   int // refused, or failed before a decision
	Allowed  int // an override with allow permits them
	Unknown  int // of crawlers that Knows does not know
	Unusable int // their method or URL can't be in an override
	TooMany  int // of more hosts than maxSuggested

	selected int    // all entries
	refused  *Entry // the first that a decision has refused

	seen map[clientHost]map[string]*methodSet // by pattern of paths; "": all
}

// Bounds on what is collected, for memory and for the reader.
const (
	maxSuggested = 1000 // pairs of a crawler and a host
	maxPatterns  = 20   // of the paths of such a pair
	maxMethods   = 10   // of one pattern
	maxMethod    = 20   // bytes
	maxPattern   = 500  // bytes
	maxCrawler   = 200  // bytes
)

type clientHost struct{ crawler, host string }

// A methodSet is the methods of requests.
type methodSet struct {
	all     bool // a tunnel that was passed through can carry any
	methods map[string]bool
	covers  []policy.Override // one, for the paths of the pattern
}

// Entry takes the next entry.
func (s *Suggestions) Entry(r *Entry) {
	denied := r.Decision == "deny" && !r.Reported()
	if s.selected++; denied && s.refused == nil {
		s.refused = new(*r)
	}
	switch {
	case r.Decision == "", denied && !(s.Refused && r.Reason == policy.ByOverride):
		s.Denied++
		return
	case r.Decision == "allow" && r.Reason == policy.ByOverride:
		s.Allowed++
		return
	case r.Crawler == "" || s.Knows != nil && !s.Knows(r.Crawler):
		s.Unknown++
		return
	}
	of, target, ok := scopeOf(r)
	if !ok {
		s.Unusable++
		return
	}
	if s.seen[of] == nil && len(s.seen) >= maxSuggested {
		s.TooMany++
		return
	}
	tunnel := r.Path == ""
	methods := s.methodsOf(of, target, tunnel)
	if methods == nil || !tunnel && !methods.methods[r.Method] && len(methods.methods) >= maxMethods {
		s.Unusable++
		return
	}
	if methods.all = methods.all || tunnel; !tunnel {
		methods.methods[r.Method] = true
	}
	s.Requests++
	if r.Reported() && r.Reason != policy.ByOverride {
		s.Rules++
	}
	s.Include(r.Time)
}

// scopeOf returns what an override for a request names, if there can be one.
func scopeOf(r *Entry) (of clientHost, target canonical.Target, ok bool) {
	target, err := canonical.ParseURL(r.Origin + r.Path)
	if err != nil || target.Origin() != r.Origin || r.Path != "" && (target.Path != r.Path || !nameable(r.Method)) ||
		r.Crawler == "" || len(r.Crawler) > maxCrawler {
		return of, target, false
	}
	_, err = glob.Host(target.Hostname()) // fails for "-", which the gate sends and an override can't name
	return clientHost{r.Crawler, target.Hostname()}, target, err == nil
}

// nameable reports whether the key methods of an override may name a method.
func nameable(method string) bool {
	return method != "" && len(method) <= maxMethod && method != http.MethodConnect && method != http.MethodTrace &&
		strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+.^_`|~-") == ""
}

// methodsOf returns the methods seen for a pattern that covers a request; nil if there can be no such
// pattern.
func (s *Suggestions) methodsOf(of clientHost, target canonical.Target, tunnel bool) *methodSet {
	patterns := s.seen[of]
	pattern := ""
	if _, all := patterns[""]; s.Depth > 0 && !tunnel && !all {
		pattern = prefixPattern(target.Path, s.Depth)
		m := patterns[pattern]
		if m == nil {
			m = newMethodSet(pattern)
		}
		if !m.permits(target) { // another reading of the path is elsewhere
			if pattern = prefixPattern(target.Path, len(target.Path)); !newMethodSet(pattern).permits(target) {
				return nil
			}
		}
		if len(pattern) > maxPattern {
			return nil
		}
	}
	if patterns == nil {
		if s.seen == nil {
			s.seen = map[clientHost]map[string]*methodSet{}
		}
		patterns = map[string]*methodSet{}
		s.seen[of] = patterns
	}
	if patterns[pattern] != nil {
		return patterns[pattern]
	}
	if pattern != "" && len(patterns) >= maxPatterns {
		s.Widened++
		pattern = ""
	}
	m := newMethodSet(pattern)
	if pattern == "" { // then the others are superfluous
		for _, other := range patterns {
			maps.Copy(m.methods, other.methods)
		}
		clear(patterns)
	}
	patterns[pattern] = m
	return m
}

func newMethodSet(pattern string) *methodSet {
	m := &methodSet{methods: map[string]bool{}}
	if pattern != "" {
		m.covers = policy.Prepared([]policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: policy.Allow, Paths: []string{pattern}}})
	}
	return m
}

// permits reports whether an override for the paths of the pattern permits a request.
func (m *methodSet) permits(t canonical.Target) bool {
	_, permitted := policy.Overridden(m.covers, policy.Strict, policy.Request{Target: t, Crawler: &policy.Crawler{}}, time.Time{})
	return permitted
}

// prefixPattern returns the pattern for the paths that begin with the same segments. A path with
// fewer segments has a pattern of its own, with or without a query.
func prefixPattern(uri string, depth int) string {
	path, _, hasQuery := strings.Cut(uri, "?")
	end, rest := "$", path[1:]
	if hasQuery {
		end = "?"
	}
	length := 1
	for range depth {
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			length = 0
			break
		}
		length, rest = length+i+1, rest[i+1:]
	}
	if length > 0 {
		path, end = path[:length], ""
	}
	return policy.EscapePath(path) + end
}

// A SuggestedOverride permits what was seen, by robots.txt.
type SuggestedOverride struct {
	Hosts, Paths, Methods, Crawlers []string // no Paths or Methods: all
}

// Overrides returns the overrides, with those for the same crawlers next to each other. Hosts that have the
// same crawlers, methods and paths share one.
func (s *Suggestions) Overrides() []SuggestedOverride {
	var all []SuggestedOverride
	for of, patterns := range s.seen {
		for pattern, m := range patterns {
			if !m.all && len(m.methods) == 0 {
				continue // no methods would stand for all
			}
			o := SuggestedOverride{Hosts: []string{of.host}, Methods: m.list(), Crawlers: []string{of.crawler}}
			if pattern != "" {
				o.Paths = []string{pattern}
			}
			all = append(all, o)
		}
	}
	all = merged(all, func(o *SuggestedOverride) *[]string { return &o.Paths })
	all = merged(all, func(o *SuggestedOverride) *[]string { return &o.Crawlers })
	all = merged(all, func(o *SuggestedOverride) *[]string { return &o.Hosts })
	slices.SortFunc(all, func(a, b SuggestedOverride) int {
		return cmp.Or(slices.Compare(a.Crawlers, b.Crawlers), slices.Compare(a.Hosts, b.Hosts), slices.Compare(a.Methods, b.Methods), slices.Compare(a.Paths, b.Paths))
	})
	return all
}

// merged makes one of the overrides that differ in one list only. It has all that these have in the list, sorted.
func merged(all []SuggestedOverride, list func(*SuggestedOverride) *[]string) (out []SuggestedOverride) {
	places := map[string]int{}
	for _, o := range all {
		part := *list(&o)
		*list(&o) = nil
		key := fmt.Sprintf("%q", o)
		i, known := places[key]
		if !known {
			i = len(out)
			places[key], out = i, append(out, o)
		}
		*list(&out[i]) = append(*list(&out[i]), part...)
	}
	for i := range out {
		slices.Sort(*list(&out[i]))
	}
	return out
}

// Permission returns the override that would allow the request if only one was given and a decision has
// refused it. It returns nil if there is no such override. An override that has refused the request is no case of it:
// see Refused.
func (s *Suggestions) Permission() (*Entry, *policy.Override) {
	if s.selected != 1 || s.refused == nil || s.refused.Reason == policy.ByOverride {
		return nil, nil
	}
	return s.refused, s.refused.Permitting()
}

// list returns the methods; nil: all. GET and HEAD go together.
func (m *methodSet) list() []string {
	if m.all {
		return nil
	}
	if m.methods[http.MethodGet] || m.methods[http.MethodHead] {
		m.methods[http.MethodGet], m.methods[http.MethodHead] = true, true
	}
	return slices.Sorted(maps.Keys(m.methods))
}
