package policy

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

// dotSegment matches a path with a dot segment that more of the path follows. It stops
// at a *, which may match into the query, where dots have no meaning.
var dotSegment = regexp.MustCompile(`(?i)\A[^*?]*/(\.|%2e){1,2}/`)

// Check reports mistakes. names are those of all crawlers.
func (o *Override) Check(m *field.Mistakes, names []string) {
	m.Require(len(o.Hosts) > 0, "hosts", `is missing: name the hosts it is for, such as ["*.partner.example"], or ["*"] for all`)
	for j, p := range o.Paths {
		at := fmt.Sprintf("paths[%d]", j)
		m.Require(strings.HasPrefix(p, "/") || strings.HasPrefix(p, "*"), at, "%.80q can't match: a path starts with / or *", p)
		m.Require(!dotSegment.MatchString(p), at, "%.80q can't match: a URL is judged without . and .. as parts of its path", p)
	}
	for j, method := range o.Methods {
		m.Refuse(fmt.Sprintf("methods[%d]", j), checkMethod(method))
	}
	for j, name := range o.Crawlers {
		m.Require(slices.Contains(names, name), fmt.Sprintf("crawlers[%d]", j), "no crawler is named %.80q: expected %s", name, strings.Join(names, ", "))
	}
	m.Require(o.Action != "", "action", "is missing: write allow, deny or robots")
	m.Require(strings.TrimSpace(o.Reason) != "", "reason", `is missing: say why, such as "contract 2026-17"; annotations and the audit log show it`)
}

// method is a method (RFC 9110, 9.1) in upper case, as all registered ones are.
var method = regexp.MustCompile("\\A[A-Z0-9!#$%&'*+.^_`|~-]+\\z")

// checkMethod says why an override can't be for a method. CONNECT is decided by the requests in its tunnel, and TRACE is
// refused in any case.
func checkMethod(m string) error {
	if method.MatchString(m) && m != http.MethodConnect && m != http.MethodTrace {
		return nil
	}
	return fmt.Errorf("expected a method in upper case, such as GET, and neither CONNECT nor TRACE, got %.80q", m)
}

// WarnOverrides reports overrides in a list that do less, or more, than they seem to. unseen reports hosts whose https
// is passed through unseen.
func WarnOverrides(overrides []Override, m *field.Mistakes, list string, unseen func(host string) bool) {
	last := -1 // the override after which none is reached
	for i := range overrides {
		o, in := &overrides[i], m.In(fmt.Sprintf("%s[%d]", list, i))
		o.WarnExpired(in)
		if last >= 0 {
			in.Add("hosts", "never reached: the override of line %d, before it, is for all requests", m.Lines[fmt.Sprintf("%s[%d].hosts", list, last)])
		} else if o.Expires.IsZero() && len(o.Crawlers)+len(o.Methods) == 0 && o.anyHost() && o.anyPath() {
			last = i
		}
		if o.Action == LeaveToRobots && !slices.ContainsFunc(overrides[i+1:], func(o Override) bool { return o.Action != LeaveToRobots }) {
			in.Add("action", "robots changes nothing here, since no override follows that allows or denies; for a list of what is permitted, add a last one: {hosts: [\"*\"], action: deny, reason: not in the list}")
		}
		o.warnUnseen(in, unseen)
	}
}

// WarnExpired reports an override that has expired.
func (o *Override) WarnExpired(m *field.Mistakes) {
	m.Require(!o.Expired(time.Now()), "expires", "expired at %s: the override is ignored", o.Expires.Format(time.RFC3339))
}

// warnUnseen warns of an override for paths or methods on hosts whose https is passed through unseen.
func (o *Override) warnUnseen(m *field.Mistakes, unseen func(host string) bool) {
	// A tunnel counts as a request for the root.
	allPaths := o.anyPath() || o.Action == Deny && slices.Contains(o.Paths, "/$")
	if allPaths && len(o.Methods) == 0 {
		return
	}
	for _, host := range o.Hosts {
		// A name that the pattern matches. A passthrough pattern for all these names matches it, too.
		name := strings.ReplaceAll(host.String(), "*", "a")
		switch {
		case !unseen(name):
		case !allPaths:
			m.Add("paths", "https to %s is passed through unseen, where an override for some paths does not count: it holds for plain http only", host)
		case o.Action == Deny:
			m.Add("methods", "https to %s is passed through unseen, so that an override that denies some methods refuses all of it", host)
		default:
			m.Add("methods", "https to %s is passed through unseen, where an override for some methods does not count: it holds for plain http only", host)
		}
	}
}

// anyHost reports whether o is for all hosts.
func (o *Override) anyHost() bool {
	return slices.ContainsFunc(o.Hosts, func(g glob.Glob) bool { return g.String() == "*" })
}

// anyPath reports whether o is for all paths of a host.
func (o *Override) anyPath() bool {
	return len(o.Paths) == 0 || slices.ContainsFunc(o.Paths, func(p string) bool {
		return p == "/" || p == "/*" || p == "*"
	})
}
