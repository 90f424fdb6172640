package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
	"robotsgate/policy/robotstxt"
)

// An Override is an operator's exception from the robots.txt of some hosts.
type Override struct {
	Hosts    []glob.Glob `yaml:"hosts" glob:"host" doc:"a host, such as \"*.example.com\""`
	Paths    []string    `yaml:"paths" doc:"a path, such as /api/"`    // patterns in the syntax of robots.txt; empty: all
	Methods  []string    `yaml:"methods" doc:"a method, such as GET"`  // in upper case; empty: all
	Crawlers []string    `yaml:"crawlers" doc:"the name of a crawler"` // names; empty: all
	Action   Action      `yaml:"action" enum:"allow,deny,robots"`
	Reason   string      `yaml:"reason" doc:"a reason in words"`                                                // shown in annotations and in the audit log
	Expires  time.Time   `yaml:"expires" doc:"a day such as 2027-03-01 or a time such as 2027-03-01T18:00:00Z"` // the first moment it no longer holds; zero: never

	rules *robotstxt.File // of Paths, if Prepared has compiled them
}

// An Action is what an override does about a request that it applies to. The zero value denies.
type Action string

// The actions.
const (
	Deny          Action = "deny"
	Allow         Action = "allow"
	LeaveToRobots Action = "robots" // no further override is looked at, and robots.txt decides
)

// Prepared returns overrides for many calls of [Overridden], with their patterns compiled. An Engine prepares its own.
func Prepared(overrides []Override) []Override {
	overrides = slices.Clone(overrides)
	for i := range overrides {
		overrides[i].rules = pathRules(overrides[i].Paths) // a copy of one that was prepared may have other paths
	}
	return overrides
}

// group returns the patterns of the paths, as rules.
func (o *Override) group() robotstxt.Group {
	if o.rules != nil {
		return o.rules.Group()
	}
	return pathRules(o.Paths).Group()
}

// Expired reports whether the override no longer holds at now.
func (o *Override) Expired(now time.Time) bool { return !o.Expires.IsZero() && !now.Before(o.Expires) }

// pathRules compiles path patterns in the syntax of robots.txt.
func pathRules(patterns []string) *robotstxt.File {
	if len(patterns) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString("User-agent: *\n")
	for _, p := range patterns {
		text.WriteString("Disallow: ")
		for i := range len(p) {
			if c := p[i]; c <= ' ' || c == '#' { // a comment or the end of the line would shorten the pattern and so widen the override
				fmt.Fprintf(&text, "%%%02X", c)
			} else {
				text.WriteByte(c)
			}
		}
		text.WriteByte('\n')
	}
	return robotstxt.Parse([]byte(text.String()), 0)
}

// Overridden decides a request by the first override that applies to it, if one does,
// as an Engine does before it needs robots.txt.
func Overridden(overrides []Override, readings Readings, r Request, now time.Time) (d *Decision, decided bool) {
	d = &Decision{Crawler: r.Crawler, Tokens: r.Crawler.Obeys(r.UserAgent), Enforced: r.Crawler.Mode != Report, Asked: now}
	if len(d.Tokens) > 0 {
		d.Token = d.Tokens[0]
	}
	if len(overrides) == 0 {
		return d, false
	}
	host, path, mayAllow := r.Target.Hostname(), readPath{r.Target.Path, readings.others(r.Target.Path)}, true
	for i := range overrides {
		o := &overrides[i]
		if !o.concerns(host, r.Crawler, now) {
			continue
		}
		c, readAs := o.covers(r, path)
		switch {
		case c == coversNone:
		case o.Action == LeaveToRobots && c == coversAll:
			d.Left = o.Reason
			return d, false
		case o.Action == LeaveToRobots:
			// Servers may take the request for one that is left to robots.txt, so a later override
			// must not allow it, and for one that is not, so a later override may deny it.
			mayAllow = false
		case !o.lifts():
			d.Reason, d.Note, d.ReadAs = ByOverride, o.Reason, readAs
			return d, true
		case c == coversAll && mayAllow:
			d.Allow, d.Reason, d.Note = true, ByOverride, o.Reason
			return d, true
		case c == coversAll:
			return d, false
		}
	}
	return d, false
}

// DeniesHost returns the decision of the override that denies a crawler all of a host, whatever the path, the method
// and the User-Agent. ok is false if there is none, or if it is reported only. The host of a connection to an address
// may have another name: it is denied only if no override before lifts anything for the crawler.
func (e *Engine) DeniesHost(t canonical.Target, k *Crawler) (d *Decision, ok bool) {
	now, host := time.Now(), t.Hostname()
	_, err := netip.ParseAddr(host)
	isAddress := err == nil
	for i := range e.config.Overrides {
		o := &e.config.Overrides[i]
		switch {
		case o.lifts() && (o.concerns(host, k, now) || isAddress && o.binds(k, now)):
			return nil, false
		case !o.lifts() && o.concerns(host, k, now) && o.coversHost():
			// What a replay finds: an override before it may deny part of the host, with another reason.
			t.Path = "/"
			d, ok = Overridden(e.config.Overrides, e.config.Robots.Readings, Request{Target: t, Crawler: k, whole: true}, now)
			return d, ok && !d.Allow && d.Enforced
		}
	}
	return nil, false
}

// coversHost reports whether the override is for all paths and methods.
func (o *Override) coversHost() bool {
	return len(o.Methods) == 0 && (len(o.Paths) == 0 || o.allOf(readPath{literal: "/"}) && o.allOf(readPath{literal: anyPath}))
}

// concerns reports whether the override is for a host and a crawler. It checks the expiry for
// every request, so that it takes effect without a reload.
func (o *Override) concerns(host string, k *Crawler, now time.Time) bool {
	return o.binds(k, now) && slices.ContainsFunc(o.Hosts, func(g glob.Glob) bool { return g.Match(host) })
}

// binds reports whether the override is for a crawler, at any host.
func (o *Override) binds(k *Crawler, now time.Time) bool {
	return !o.Expired(now) && (len(o.Crawlers) == 0 || slices.Contains(o.Crawlers, k.Name))
}

// A readPath is a path with its readings beside the literal one.
type readPath struct {
	literal string
	others  []string
}

// A coverage says how much of what a request may mean to servers is in an override's paths and
// methods: their readings of the path, and for a whole host all its paths and methods.
type coverage int

const (
	coversNone coverage = iota
	coversSome          // enough to deny
	coversAll
)

// covers returns the override's coverage of a request. ReadAs is the reading of the path that
// an override denies, if that is not the literal one.
func (o *Override) covers(r Request, path readPath) (c coverage, readAs string) {
	if c = o.coversMethod(r); c == coversNone || len(o.Paths) == 0 {
		return c, ""
	}
	ofPath, readAs := o.coversPath(r, path)
	return min(c, ofPath), readAs
}

// coversMethod returns the coverage of the request's method. A method in another case is another
// method (RFC 9110, 9.1), but some servers take it for the same.
func (o *Override) coversMethod(r Request) coverage {
	method := cmp.Or(r.Method, http.MethodGet)
	switch {
	case len(o.Methods) == 0:
		return coversAll
	case r.whole:
		return coversSome
	case slices.Contains(o.Methods, method):
		return coversAll
	case slices.ContainsFunc(o.Methods, func(m string) bool { return strings.EqualFold(m, method) }):
		return coversSome
	}
	return coversNone
}

func (o *Override) coversPath(r Request, path readPath) (c coverage, readAs string) {
	group := o.group()
	switch {
	case r.whole && o.allOf(path) && o.allOf(readPath{literal: anyPath}):
		return coversAll, "" // "/$" matches the root, and must not open the other paths
	case r.whole && o.Action == LeaveToRobots:
		return coversSome, ""
	case !r.whole && o.lifts() && o.allOf(path):
		return coversAll, ""
	}
	if _, ok := group.Match(path.literal); ok {
		return coversSome, ""
	}
	for _, reading := range path.others {
		if _, ok := group.Match(reading); ok {
			return coversSome, reading
		}
	}
	return coversNone, ""
}

// lifts reports whether the override can lift what a later override or robots.txt denies.
func (o *Override) lifts() bool { return o.Action == Allow || o.Action == LeaveToRobots }

// allOf reports whether the literal path is one of the override's paths, and all its other
// readings too: an override that allows /public/ must not open /public/..;/private/. The other
// readings do not count if the pattern is written in the same spelling as the path.
func (o *Override) allOf(path readPath) bool {
	group := o.group()
	rule, ok := group.Match(path.literal)
	if !ok {
		return false
	}
	return rule.SpellsLike(path.literal) || !slices.ContainsFunc(path.others, func(reading string) bool {
		_, ok := group.Match(reading)
		return !ok
	})
}

// anyPath stands for all paths. No origin has it, so a pattern that matches it is for all paths.
const anyPath = "/%01"
