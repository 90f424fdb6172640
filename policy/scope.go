package policy

import "strings"

// A Scope says for which clients a [Record] decides. An origin may answer each User-Agent
// differently, with or without saying so, and clients choose their User-Agent. So what a client
// that is none of the configured crawlers brought never decides for a configured crawler.
// The other direction is kept apart too: an origin may allow a crawler that it knows more
// than everyone else.
type Scope struct {
	Origin   string
	Crawlers bool   // for the configured crawlers; false: for all other clients
	Token    string // only for crawlers with this product token, as returned by [TokenKey]; empty: for all
}

// crawlersPrefix begins the keys of records for configured crawlers. Without it, a key is that
// of a gate that did not separate the two: its records then decide for other clients
// only, since they do not say what kind of client brought them.
const crawlersPrefix = "crawlers "

// Key returns the name under which a [Store] keeps the record of the scope.
func (s Scope) Key() string {
	key := s.Origin
	if s.Crawlers {
		key = crawlersPrefix + key
	}
	if s.Token != "" {
		key = copyKey(key, s.Token)
	}
	return key
}

// ParseKey returns the scope that a key of a [Store] names.
func ParseKey(key string) (s Scope) {
	key, s.Crawlers = strings.CutPrefix(key, crawlersPrefix)
	s.Origin, s.Token, _ = strings.Cut(key, " ") // there is no space in an origin
	return s
}

// copyKey returns the key of the copy that binds one product token only, beside the record
// with this key.
func copyKey(key, token string) string {
	const longest = 256 // stores bound the length of keys
	if len(token) > longest {
		token = Digest(token)
	}
	return key + " " + token
}
