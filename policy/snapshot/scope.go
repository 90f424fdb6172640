package snapshot

import "strings"

// A Scope says which file of an origin a [Set] is of, and for which asker it decides. An answer binds all crawlers with
// the asker that has received it, and no other: an origin may answer one User-Agent otherwise than another, with or
// without Vary.
type Scope struct {
	Origin string
	TDMRep bool   // the file is the tdmrep.json; false: the robots.txt
	Asker  string // what the origin can tell crawlers apart by, see [Resolver.Scope]
}

// askerOf returns the asker of fetches with this User-Agent, which are signed with the key of this id if it is not empty.
func askerOf(userAgent, keyID string) string {
	const longest = 256 // stores bound the length of keys
	if keyID != "" {
		userAgent += " · keyid=" + keyID // a User-Agent is in ASCII, so none looks like a signed one
	}
	if len(userAgent) > longest {
		return Digest(userAgent)
	}
	return userAgent
}

// tdmrepPrefix begins the keys of sets of tdmrep.json. Stores list the origins of the other keys only.
const tdmrepPrefix = "tdmrep "

// Key returns the name under which a [Store] keeps the set of the scope.
func (s Scope) Key() string {
	key := s.Origin
	if s.TDMRep {
		key = tdmrepPrefix + key
	}
	if s.Asker != "" {
		key += " " + s.Asker
	}
	return key
}

// ParseKey returns the scope that a key of a [Store] names.
func ParseKey(key string) (s Scope) {
	key, s.TDMRep = strings.CutPrefix(key, tdmrepPrefix)
	s.Origin, s.Asker, _ = strings.Cut(key, " ") // there is no space in an origin
	return s
}

// URL returns the URL of the file.
func (s Scope) URL() string {
	if s.TDMRep {
		return s.Origin + TDMRepPath
	}
	return s.Origin + robotsPath
}
