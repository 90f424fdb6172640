package policy

import "strings"

// A Scope says for which clients a [Record] decides. For each origin there is one record for the
// configured crawlers and one for all other clients, and neither decides for the other side:
//   - An origin may answer each User-Agent differently, with or without Vary, and clients choose
//     their User-Agent. An unknown client must not bring the answer for a configured crawler.
//   - An origin may allow a crawler that it knows more than others.
type Scope struct {
	Origin   string
	Crawlers bool   // for the configured crawlers; false: for all other clients
	Token    string // only for the crawler with this [TokenKey]; empty: for all
}

// crawlersPrefix begins the keys of records for configured crawlers.
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
