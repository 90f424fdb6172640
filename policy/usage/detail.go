package usage

import (
	"fmt"
	"slices"
)

// A Detail is a [Preference] in JSON, as commands and the audit log write it.
type Detail struct {
	Use    string `json:"use"`
	Value  string `json:"value"` // y or n
	Source Source `json:"source"`
	In     Place  `json:"in"`
	Line   int    `json:"line,omitempty"` // of robots.txt
}

// Detail returns p in JSON form.
func (p Preference) Detail() Detail {
	return Detail{Use: p.Category, Value: p.Value(), Source: p.Source, In: p.In, Line: p.Line}
}

// String returns the preference in words: "train-ai=n from content-usage, line 4 of robots.txt".
func (d Detail) String() string {
	return d.Use + "=" + d.Value + " from " + string(d.Source) + ", " + Where(d.In, d.Line)
}

// Where returns where a preference or a licence was read, in words.
func Where(in Place, line int) string {
	switch {
	case line > 0:
		return fmt.Sprintf("line %d of robots.txt", line)
	case in == InRobots:
		return "in robots.txt"
	case in == InHeader:
		return "in the response's header"
	case in == InMeta:
		return "in the page's head"
	case in == InWellKnown:
		return "in tdmrep.json"
	}
	return string(in)
}

// Details returns the preferences in JSON form, in order; nil if there are none.
func (s Stated) Details() (all []Detail) {
	all = slices.Grow(all, len(s.Preferences))
	for _, p := range s.Preferences {
		all = append(all, p.Detail())
	}
	return all
}

// URLs returns the URLs of the licences, in order; nil if there are none.
func (s Stated) URLs() (all []string) {
	all = slices.Grow(all, len(s.Licenses))
	for _, l := range s.Licenses {
		all = append(all, l.URL)
	}
	return all
}
