package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
)

// Permitting returns the override that allows a crawler's requests with a method for a target, and nothing else. GET and
// HEAD go together. CONNECT stands for a tunnel that is passed through, and the override is for the whole host then. It
// returns nil if there is no such override. The operator adds a reason.
func Permitting(t canonical.Target, method, crawler string) *Override {
	host, err := glob.Host(t.Hostname()) // fails for "-", which the gate sends and an override can't name
	if err != nil || crawler == "" {
		return nil
	}
	o := Override{Hosts: []glob.Glob{host}, Crawlers: []string{crawler}, Action: Allow}
	if method == http.MethodConnect {
		return &o
	}
	o.Paths, o.Methods = []string{EscapePath(t.Path) + "$"}, []string{method}
	if method == http.MethodGet || method == http.MethodHead {
		o.Methods = []string{http.MethodGet, http.MethodHead}
	}
	ask := Request{Target: t, Method: method, Crawler: &Crawler{Name: crawler}}
	// Another reading of the path may be elsewhere.
	d, decided := Overridden(Prepared([]Override{o}), Strict, ask, time.Time{})
	if !decided || !d.Allow || checkMethod(method) != nil {
		return nil
	}
	return &o
}

// Permit returns the override that would allow a denied request with a method for a target, and no other, as an entry of
// overrides in a configuration. It stands in front of the others. It is empty if the request is allowed, or no override
// can name it.
func (d *Decision) Permit(t canonical.Target, method string) string {
	if d.Allow || d.Crawler == nil {
		return ""
	}
	o := Permitting(t, method, d.Crawler.Name)
	if o == nil {
		return ""
	}
	return o.Line()
}

// EscapePath escapes the characters of a path that mean something in a pattern.
func EscapePath(path string) string { return strings.NewReplacer("*", "%2A", "$", "%24").Replace(path) }

// Line returns the override as an entry of overrides in a configuration, in one line.
func (o *Override) Line() string {
	var b strings.Builder
	list := func(key string, all []string) {
		quoted := make([]string, len(all))
		for i, text := range all {
			quoted[i] = field.Quote(text)
		}
		if len(all) > 0 {
			fmt.Fprintf(&b, "%s: [%s], ", key, strings.Join(quoted, ", "))
		}
	}
	var hosts []string
	for _, h := range o.Hosts {
		hosts = append(hosts, h.String())
	}
	list("hosts", hosts)
	list("paths", o.Paths)
	list("methods", o.Methods)
	list("crawlers", o.Crawlers)
	return "- {" + b.String() + "action: " + string(o.Action) + ", reason: " + field.Quote(cmp.Or(o.Reason, "say why")) + "}"
}
