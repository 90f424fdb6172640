package questions

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"robotsgate/policy/usage"
)

// Unread returns what the response's header and its page's head say about the use of content in a form that
// cannot be read, so that it states nothing.
func (r *Reading) Unread() (mistakes []string) {
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(mistakes, text) {
			mistakes = append(mistakes, text)
		}
	}
	// In a header a path is none (draft-ietf-aipref-attach-05, 2): white space in front keeps it from being read.
	parse := func(source usage.Source, value string) (usage.Line, bool) { return usage.ParseLine(source, " "+value) }
	if lines := r.Header["Content-Usage"]; len(lines) > 0 { // all lines are one Dictionary
		value := strings.Join(lines, ", ")
		line, ok := parse(usage.ContentUsage, value)
		if !ok {
			add("the response's Content-Usage: %s is no Dictionary of RFC 9651, so all of it states nothing", shown(value))
		}
		for i, m := range line.Members { // the last of a label counts
			again := slices.ContainsFunc(line.Members[i+1:], func(n usage.Member) bool { return n.Label == m.Label })
			if ok && !again && m.Value != "y" && m.Value != "n" && isCategory(m) {
				add("the response's Content-Usage has neither y nor n for %s, so it says nothing about that", m.Label)
			}
		}
	}
	for _, value := range r.Header["Content-Signal"] {
		line, ok := parse(usage.ContentSignal, value)
		if !ok {
			add("the response's Content-Signal: %s has no member of the form label=value, so it states nothing", shown(value))
		}
		for _, m := range line.Members {
			if v := strings.ToLower(m.Value); v != "yes" && v != "no" && isCategory(m) {
				add("the response's Content-Signal has neither yes nor no for %s, so it says nothing about that", m.Label)
			}
		}
	}
	reservation := func(where, value string) {
		if text := strings.Trim(value, " \t\n\f\r"); text != "0" && text != "1" {
			add("%s %s is neither 0 nor 1, so it states nothing", where, shown(value))
		}
	}
	for _, value := range r.Header[http.CanonicalHeaderKey("tdm-reservation")] {
		reservation("the response's tdm-reservation:", value)
	}
	for _, m := range r.Head.Metas {
		if strings.EqualFold(m.Name, "tdm-reservation") {
			reservation("the page's tdm-reservation:", m.Content)
		}
	}
	return mistakes
}

// isCategory reports whether a member names a category that has a meaning.
func isCategory(m usage.Member) bool { return slices.Contains(usage.Labels(), m.Label) }

// shown returns a text of the network in quotes, cut to a length for a message.
func shown(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return `"` + text + `"`
}
