package usage

import "slices"

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
