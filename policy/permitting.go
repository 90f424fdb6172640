package policy

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
	"robotsgate/policy/robotstxt"
)

// Permitting returns the override that allows a crawler's requests with a method for a target's path, at all schemes and
// ports of its host. GET and HEAD go together. CONNECT stands for a tunnel that is passed through, and the override is
// for the whole host then. It returns nil if there is no such override. The operator adds a reason.
func Permitting(t canonical.Target, method, crawler string) *Override {
	host, err := glob.Host(t.Hostname())
	if err != nil || crawler == "" {
		return nil
	}
	o := Override{Hosts: []glob.Glob{host}, Crawlers: []string{crawler}, Action: Allow}
	if method == http.MethodConnect {
		return &o
	}
	o.Paths, o.Methods = []string{patternEscapes.Replace(t.Path) + "$"}, []string{method}
	if method == http.MethodGet || method == http.MethodHead {
		o.Methods = []string{http.MethodGet, http.MethodHead}
	}
	if checkMethod(method) != nil {
		return nil
	}
	// Another reading of the path may be elsewhere.
	if len(robotstxt.Readings(t.Path)) > 0 {
		ask := Request{Target: t, Method: method, Crawler: &Crawler{Name: crawler}}
		if d, decided := Overridden(Prepared([]Override{o}), Strict, ask, time.Time{}); !decided || !d.Allow {
			return nil
		}
	}
	return &o
}

// Permit returns the override of [Permitting] for a denied request with a method for a target, as an entry of overrides
// in a configuration. It stands in front of the others. It is empty if the request is allowed, or no override
// can name it, or none could help.
func (d *Decision) Permit(t canonical.Target, method string) string {
	if d.Allow || d.Crawler == nil || d.ParentFailed() {
		return ""
	}
	o := Permitting(t, method, d.Crawler.Name)
	if o == nil {
		return ""
	}
	return o.Line()
}

// ParentFailed reports whether robots.txt is unreachable because the parent proxy is, through which no request would come.
func (d *Decision) ParentFailed() bool {
	return d.Reason == IsUnreachable && d.Robots.Snapshot.Elsewhere
}

// patternEscapes escapes the characters of a path that mean something in a pattern.
var patternEscapes = strings.NewReplacer("*", "%2A", "$", "%24")

// quote returns a text in quotes, as a configuration in YAML reads it: YAML has all escapes of Go.
func quote(text string) string {
	return strconv.Quote(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "${", "$${"))
}

// Line returns the override as an entry of overrides in a configuration, in one line.
func (o *Override) Line() string {
	line := append(make([]byte, 0, 256), "- {"...)
	list := func(key string, all []string) {
		for i, text := range all {
			if i == 0 {
				line = append(append(line, key...), ": ["...)
			} else {
				line = append(line, ", "...)
			}
			line = append(line, quote(text)...)
		}
		if len(all) > 0 {
			line = append(line, "], "...)
		}
	}
	hosts := make([]string, len(o.Hosts))
	for i, h := range o.Hosts {
		hosts[i] = h.String()
	}
	list("hosts", hosts)
	list("paths", o.Paths)
	list("methods", o.Methods)
	list("crawlers", o.Crawlers)
	return string(line) + "action: " + string(o.Action) + ", reason: " + quote(cmp.Or(o.Reason, "say why")) + "}"
}
