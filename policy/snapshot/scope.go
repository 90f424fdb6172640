package snapshot

import "strings"

// A Scope says which file of an origin a [Set] is of, and for which clients it decides. For each file there
// is one set for the configured crawlers and one for all other clients, and neither decides for the other side:
// an origin may answer the User-Agent of a crawler otherwise than that of other clients, with or without Vary.
type Scope struct {
	Origin   string
	TDMRep   bool   // the file is the tdmrep.json; false: the robots.txt
	Crawlers bool   // for the configured crawlers; false: for all other clients
	Slot     string // only for the crawler with this [Slot]; empty: for all
}

const (
	// tdmrepPrefix begins the keys of sets of tdmrep.json. Stores list the origins of the other keys only.
	tdmrepPrefix = "tdmrep "
	// crawlersPrefix begins the rest of the keys of sets for configured crawlers.
	crawlersPrefix = "crawlers "
)

// Key returns the name under which a [Store] keeps the set of the scope.
func (s Scope) Key() string {
	key := s.Origin
	if s.Crawlers {
		key = crawlersPrefix + key
	}
	if s.TDMRep {
		key = tdmrepPrefix + key
	}
	if s.Slot != "" {
		key = copyKey(key, s.Slot)
	}
	return key
}

// ParseKey returns the scope that a key of a [Store] names.
func ParseKey(key string) (s Scope) {
	key, s.TDMRep = strings.CutPrefix(key, tdmrepPrefix)
	key, s.Crawlers = strings.CutPrefix(key, crawlersPrefix)
	s.Origin, s.Slot, _ = strings.Cut(key, " ") // there is no space in an origin
	return s
}

// URL returns the URL of the file.
func (s Scope) URL() string {
	if s.TDMRep {
		return s.Origin + TDMRepPath
	}
	return s.Origin + robotsPath
}

// copyKey returns the key of the copy that binds the crawler with this slot only, beside the set
// with this key.
func copyKey(key, slot string) string {
	const longest = 256 // stores bound the length of keys
	if len(slot) > longest {
		slot = Digest(slot)
	}
	return key + " " + slot
}
