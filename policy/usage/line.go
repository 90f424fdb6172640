package usage

import (
	"maps"
	"slices"
)

// A Line is what a Content-Usage or Content-Signal line of a robots.txt says, for explanations.
type Line struct {
	Path    string // that begins it; "" if there is none
	Members []Member
}

// A Member is one of the list in a [Line].
type Member struct {
	Label string // in lower case
	Value string // of Content-Usage: a Token, "" for any other type; of Content-Signal: as written
}

// ParseLine parses the value of a robots.txt line of this source, [ContentUsage] or [ContentSignal]. If ok
// is false, the line states nothing and hides no other line: a value of Content-Usage is not a Dictionary, one
// of Content-Signal has no member of the form label=value, or the value has more than 128 KiB.
func ParseLine(source Source, value string) (l Line, ok bool) {
	path, statement := cutPath(value)
	l.Path = path
	add := func(label, value string) { l.Members = append(l.Members, Member{label, value}) }
	if len(value) > maxValue {
		return l, false
	}
	if source == ContentUsage {
		ok = parseDictionary(statement, add)
		return l, ok
	}
	ok = parseContentSignal(statement, add)
	return l, ok
}

// Labels returns the labels that name a category which has a meaning, ascending.
func Labels() []string { return slices.Sorted(maps.Keys(categories)) }
