package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/field"
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

func checkMethod(m string) error {
	switch upper := strings.ToUpper(m); {
	case upper == "CONNECT":
		return errors.New("CONNECT is decided by the requests in its tunnel: name their methods, such as GET")
	case upper == "TRACE":
		return errors.New("TRACE is refused in any case")
	case method.MatchString(m):
		return nil
	case method.MatchString(upper):
		return fmt.Errorf("%.80q is not in upper case, which counts in methods: write %.80s", m, upper)
	}
	return fmt.Errorf("expected a method such as GET, got %.80q", m)
}

// Warn reports an override that has expired.
func (o *Override) Warn(m *field.Mistakes) {
	m.Require(!o.Expired(time.Now()), "expires", "expired at %s: the override is ignored", o.Expires.Format(time.RFC3339))
}
