package htmlmeta

import (
	"errors"
	"io"
	"sync"

	"robotsgate/internal/coding"
)

// A scanner is what one Scan needs. It is worth keeping for the next, since
// making its buffers costs as much as using them.
type scanner struct {
	wire    wire
	limited limited
	page    page
	head    head
}

var scanners = sync.Pool{New: func() any {
	return &scanner{page: page{start: make([]byte, 0, prescanned)}}
}}

// maxKept bounds the reduced page whose buffer is worth keeping.
const maxKept = 16 << 10

// reset lets go of the page and leaves the buffers.
func (s *scanner) reset() {
	kept := s.head.kept[:0]
	if cap(kept) > maxKept {
		kept = nil
	}
	*s = scanner{page: page{start: s.page.start[:0]}, head: head{kept: kept}}
}

func (s *scanner) scan(r io.Reader, o Options) (Result, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	s.wire.r = r
	s.limited.r, s.limited.left = &s.wire, o.MaxBytes
	if o.ContentEncoding != "" {
		body, err := coding.NewReader(&s.wire, []string{o.ContentEncoding})
		if err != nil {
			return Result{Why: "encoding"}, nil
		}
		defer body.Close()
		s.limited.r = body
	}
	s.page.r, s.page.contentType = &s.limited, o.ContentType
	scan := scanHTML
	if mediaType(o.ContentType) == "application/xhtml+xml" {
		scan = scanXHTML
	}
	metas, err := scan(&s.head, &s.page)
	res := Result{Metas: metas, Bytes: s.limited.n}
	switch {
	case err == nil:
		res.Complete = true
	case errors.Is(err, errLimit):
		res.Why = "limit"
	case s.wire.err != nil:
		if timedOut(s.wire.err) {
			res.Why = "timeout"
		}
		return res, s.wire.err
	default:
		res.Why = "encoding"
	}
	return res, nil
}
