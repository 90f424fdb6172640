// Package htmlmeta reads the named <meta> elements of a page's head, and no
// more of the page than the head can reach.
//
// It knows nothing of what the names mean.
package htmlmeta

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// A Meta is one <meta name content> of a head.
type Meta struct {
	Name    string // white space around it removed
	Content string // character references decoded, otherwise as written
}

// Options says how to read a body.
type Options struct {
	ContentType     string // the field's value; an empty one is text/html
	ContentEncoding string // the field's value, several lines joined by commas
	MaxBytes        int    // of the decoded body; 0 is DefaultMaxBytes
}

// DefaultMaxBytes bounds the head where Options doesn't.
const DefaultMaxBytes = 512 << 10

// A Result is what Scan found.
type Result struct {
	Metas []Meta

	// Complete is set if the head was read to its end, so that no meta in it
	// can have been missed.
	Complete bool

	// Why says what kept Scan from the head's end: "limit", "encoding" or, if
	// r's error was a timeout, "timeout".
	Why string

	// Bytes counts the decoded bytes that were read.
	Bytes int64
}

// Wanted reports whether a body of this type has a head to scan.
func Wanted(contentType string) bool {
	switch mediaType(contentType) {
	case "text/html", "application/xhtml+xml":
		return true
	}
	return false
}

func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Scan reads a page from r, as it came over the wire, and returns the named
// metas that the HTML standard puts into its head.
//
// It stops reading as soon as what has come settles that the head is over, and
// never waits for more than it needs: when r blocks with nothing to deliver,
// so does Scan. The error is that of r; what was found before it is returned
// too.
func Scan(r io.Reader, o Options) (Result, error) {
	s := scanners.Get().(*scanner)
	res, err := s.scan(r, o)
	s.reset()
	scanners.Put(s) // not after a panic
	return res, err
}

func timedOut(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// union returns the metas of all lists, each once.
func union(lists ...[]Meta) []Meta {
	var metas []Meta
	var seen map[Meta]bool // once there are many
	for _, list := range lists {
		for _, m := range list {
			switch {
			case seen != nil && seen[m], seen == nil && slices.Contains(metas, m):
				continue
			case seen == nil && len(metas) == 32:
				seen = make(map[Meta]bool)
				for _, m := range metas {
					seen[m] = true
				}
			}
			if seen != nil {
				seen[m] = true
			}
			metas = append(metas, m)
		}
	}
	return metas
}
