// Package snapshot knows what origins answered to requests for their robots.txt and tdmrep.json, and what these
// answers mean to a crawler now: the rules of a file that is fresh or stale, no rules, or that nothing is allowed
// (RFC 9309, 2.3.1). Whether a request may be sent is decided by package policy.
//
// A [Resolver] answers a [Query] with a [Resolution]. It fetches a file if it has to, keeps what was answered in memory,
// saves it, and renews it in the background. [Settings] say how files are fetched and for how long answers count.
//
// A [Snapshot] is one answer. The snapshots of an origin's file are a [Set], which a [Store] keeps under the key of
// its [Scope]. An [Archive] has the answers of the past. Store and Archive are the seams for other databases.
package snapshot

// Where to change what.
//
//	what a status means, such as 429:
//		freshness.go; with a copy of before: resolution.go
//	one fetch and its redirects:
//		fetch.go
//	when there is a fetch, and when its answer is saved:
//		update.go; what the store could not save: unsaved.go
//	which crawlers an answer binds:
//		scope.go; what is kept of answers: set.go
//	which files are fetched beside robots.txt:
//		file.go for what is parsed, scope.go for its place in stores; tdmrepFor of package policy is a model of its
//		use
//	what is in memory:
//		entry.go
//	where sets are kept:
//		store.go and archive.go have the contract; internal/store/storetest tests it

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"robotsgate/policy/robotstxt"
)

// A Snapshot is an origin's answer to a request for its robots.txt, without the body. There is
// also one of each request that brought no answer: it says why.
type Snapshot struct {
	URL       string    `json:"url"`                 // where the last redirect led
	Status    int       `json:"status"`              // 0: the origin gave no complete answer
	Error     string    `json:"error,omitempty"`     // why not
	Fetched   time.Time `json:"fetched"`             // when it was fetched, or last confirmed by a 304
	Elsewhere bool      `json:"elsewhere,omitempty"` // the fault is not the origin's: the way to all origins is closed
	SHA256    string    `json:"sha256,omitempty"`    // of the body, of a 2xx only
	Cut       bool      `json:"cut,omitempty"`       // the body was longer than Settings.MaxBytes
	HTML      bool      `json:"html,omitempty"`      // the body is an HTML page, without a line of a robots.txt
	Looped    bool      `json:"looped,omitempty"`    // more redirects than Settings.MaxRedirects
	ETag      string    `json:"etag,omitempty"`
	Modified  string    `json:"last_modified,omitempty"`

	// Lifetime is how long the answer is valid according to its Cache-Control or
	// Expires, less its Age (RFC 9111, 4.2.1); negative: it does not say. Retry is its
	// Retry-After. The resolver uses Retry for a failure, and Lifetime for every other answer. It
	// applies its bounds when it reads them, so that new settings apply to stored answers too.
	Lifetime time.Duration `json:"lifetime"`
	Retry    time.Duration `json:"retry_after,omitempty"`

	// Failures counts the failures in a row up to this one; Since is the time of the first.
	Failures int       `json:"failures,omitempty"`
	Since    time.Time `json:"since,omitzero"`

	By string `json:"by,omitempty"` // the gate that fetched it; empty: this one

	// Substitute says that this is no answer of the origin: the resolver made it because it could not fetch in time.
	// It denies, and is not kept.
	Substitute bool `json:"-"`
}

// good reports whether the answer has rules to obey.
func (s *Snapshot) good() bool { return s != nil && s.complete() && !(s.HTML && s.SHA256 == "") }

// complete reports whether the origin sent its file. A 206 has only a part of it, although the
// request was for all: the rules that are missing might be those that deny.
func (s *Snapshot) complete() bool {
	return s.Status >= 200 && s.Status <= 299 && s.Status != http.StatusPartialContent
}

// forbidden reports whether the origin refused its robots.txt to the asker.
func (s *Snapshot) forbidden() bool {
	return s.Status == http.StatusUnauthorized || s.Status == http.StatusForbidden
}

// aboutFile reports whether the answer has the robots.txt, or says that there is none.
func (s *Snapshot) aboutFile() bool {
	return s.complete() || s.Looped || s.Status == http.StatusNotFound || s.Status == http.StatusGone
}

// keepFile notes which body an answer had, and returns it. A page in place of a robots.txt is no file if it counts as a
// failure: then the last good copy is kept.
func (c *Settings) keepFile(s *Snapshot, file content) content {
	if f, ok := file.(*robotstxt.File); ok && f.HTML() {
		if s.HTML = true; c.HTML == "unreachable" {
			s.Error = "the origin answered with an HTML page in place of the file"
			return nil
		}
	}
	s.setFile(file)
	return file
}

// setFile notes which body the answer had. The digest names it as evidence.
func (s *Snapshot) setFile(file content) {
	s.SHA256, s.Cut = Digest(file.Body()), file.Truncated()
}

// Digest returns the SHA-256 of a text, such as a robots.txt, in lower-case hex.
func Digest[T string | []byte](body T) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}
