// Package usage reads what a publisher says that its content may be used for, beside whether it
// may be fetched: Content-Usage of AIPREF, Content-Signal, TDMRep, the robots tags noai, noimageai
// and noml, and RSL licences.
//
// It does no I/O and uses no clock. [Read] returns everything in force for one URL and one crawler:
// before the request, the statements of robots.txt and tdmrep.json; after it, those of the response
// too. If statements in force differ about a category, "n" wins. A category without a statement is
// unknown, which is neither a permission nor a reservation.
package usage

// Where to change what.
//
//	a signal             a file with its reader, a row of the table signals below, and a case in
//	                     testdata/cases.jsonl. What it reads must be in Input, and a quick look for it
//	                     in maystate.go, since most URLs state nothing
//	a category or label  categories in statement.go
//	what covers a purpose  covering in usage.go

import (
	"net/http"
	"slices"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/robotstxt"
)

// A Source is the signal that states a preference or a licence.
type Source string

// The sources, spelled as in annotations.
const (
	ContentUsage  Source = "content-usage"
	ContentSignal Source = "content-signal"
	TDMRep        Source = "tdmrep"
	RobotsTag     Source = "robots-tag"
	RSL           Source = "rsl"
)

// A Place is where a signal was read.
type Place string

// The places, spelled as in annotations.
const (
	InRobots    Place = "robots"
	InHeader    Place = "header"
	InMeta      Place = "meta" // anything in the head of a page
	InWellKnown Place = "well-known"
)

// A Preference is what one statement in force says about one category.
type Preference struct {
	Category string // train-ai, ai-input, search, tdm, use, or another label as stated
	Allowed  bool   // "y"; false: "n", the use is reserved
	Level    Level  // of LevelCategory, which is neither "y" nor "n"
	Source   Source
	In       Place
	Line     int // of robots.txt, 1-based; 0 elsewhere
}

// Value returns "y" or "n", or the level.
func (p Preference) Value() string {
	switch {
	case p.Level != "":
		return string(p.Level)
	case p.Allowed:
		return "y"
	}
	return "n"
}

// A Level is how far AI systems may use content: immediate, reference or full, from the least to the most permissive.
type Level string

// LevelCategory is the label, and the category, that has a Level in Content-Signal.
const LevelCategory = "use"

// below reports whether both are levels, and l is less permissive.
func (l Level) below(other Level) bool {
	return l != "" && other != "" && slices.Index(signalValues, string(l)) > slices.Index(signalValues, string(other))
}

// A License is a link to a licence, which states neither "y" nor "n".
type License struct {
	URL    string // absolute
	Source Source // RSL, or TDMRep for a policy
	In     Place
	Line   int // of robots.txt, 1-based; 0 elsewhere
}

// An Input is what is known of a URL, for one crawler. The zero value states nothing.
type Input struct {
	Robots *robotstxt.File // the rules to obey; nil: there are none
	Group  robotstxt.Group // of Robots, that the crawler obeys; the zero value: none
	Path   string          // with the query, in canonical form
	Denied bool            // Robots denies the URL, so it states no preference for it

	Header http.Header      // of the response; nil: there is none yet
	Tags   []robotstag.Rule // of the response and of its head, that bind the crawler
	Metas  []htmlmeta.Meta  // of the head
	Links  []htmlmeta.Link  // of the head

	TDMRep *TDMFile // of the origin; nil: there is none

	// Effort bounds the work of matching the paths of statements against Path. When it is exhausted, every
	// statement counts as one for Path. Several inputs may share an Effort. nil: one of its own.
	Effort *robotstxt.Effort
}

// Stated is what is in force for a URL. Treat it as immutable.
type Stated struct {
	Preferences []Preference // without duplicates, in the order of the places
	Licenses    []License    // each URL once, in the order of the places
}

// A Purpose is what a crawler fetches for.
type Purpose string

// The purposes.
const (
	TrainAI Purpose = "train-ai"
	AIInput Purpose = "ai-input"
	Search  Purpose = "search"
	TDM     Purpose = "tdm"
)

// Purposes are all purposes.
var Purposes = []Purpose{TrainAI, AIInput, Search, TDM}

// covering has the categories that cover a purpose. Training, and taking content into the input of a
// model, are analysis of text and data (Directive (EU) 2019/790, 2(2)); search is ruled by search alone
// (draft-ietf-aipref-vocab-08, 4.3).
var covering = map[Purpose][]string{
	TrainAI: {"train-ai", "tdm"},
	AIInput: {"ai-input", "tdm"},
	Search:  {"search"},
	TDM:     {"tdm"},
}

// Reserved returns the first preference that reserves one of the purposes, and that purpose, or whose level is below
// the crawler's own; that has no purpose. reserved is false if there is no such preference.
func (s Stated) Reserved(purposes []Purpose, own Level) (by Preference, purpose Purpose, reserved bool) {
	for _, p := range s.Preferences {
		if p.Level.below(own) {
			return p, "", true
		}
		if p.Allowed {
			continue
		}
		for _, purpose := range purposes {
			if slices.Contains(covering[purpose], p.Category) {
				return p, purpose, true
			}
		}
	}
	return Preference{}, "", false
}

// Values returns "y" or "n" for each category that a preference names: "n" if any of its preferences says
// "n" (draft-ietf-aipref-vocab-08, 5.1). For LevelCategory it is the least permissive level.
func (s Stated) Values() map[string]string {
	values := make(map[string]string, len(s.Preferences))
	for _, p := range s.Preferences {
		if v := values[p.Category]; v != "n" && !Level(v).below(p.Level) {
			values[p.Category] = p.Value()
		}
	}
	return values
}

// signals has a function for each kind of statement, which states what is in force. To add one, write a file with its
// function, and add a row.
var signals = []func(c *collector){
	readContentUsage,
	readContentSignal,
	readRobotsTags,
	readRSL,
	readTDMRep, // after RSL, since its policies come last among the licences
}

// Read returns what is in force. It allocates nothing if nothing is stated.
func Read(in *Input) Stated {
	if !in.MayState() {
		return Stated{}
	}
	c := newCollector(in)
	for _, read := range signals {
		read(c)
	}
	return c.stated()
}
