package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/coding"
	"robotsgate/policy/cache"
	"robotsgate/policy/canonical"
)

// Bounds on texts of clients and origins that are kept or sent on, in bytes.
const (
	maxUserAgent = 1024
	maxURL       = 2048 // of a redirect's destination
	maxValidator = 256
	maxError     = 256
)

// A fetcher asks origins for their files.
type fetcher struct {
	transport http.RoundTripper
	settings  *Settings
	large     chan struct{} // see newLarge; nil: all may be read at once
}

const (
	// smallBody is how much of every body is read at once, in bytes: nearly all are smaller.
	smallBody = 32 << 10
	// largeBodies bounds the memory of the others while they are read, in bytes.
	largeBodies = 64 << 20
)

// newLarge returns a semaphore for bodies beyond smallBody: without it each origin that is
// fetched from could take MaxBytes of memory at the same time. A fetch takes its place for the
// whole rest of the body, since fetches that hold some memory and wait for more could block each other.
func newLarge(maxBytes int) chan struct{} {
	return make(chan struct{}, max(1, largeBodies/max(1, maxBytes)))
}

// Fetch requests the file at a URL as a Resolver requests an origin's robots.txt. The result has
// the answer, its rules, and what it means to a crawler: Fresh, Unavailable or Unreachable.
// It is for tools that examine the file itself.
func (c *Settings) Fetch(ctx context.Context, transport http.RoundTripper, url, userAgent string) (Resolution, error) {
	f := fetcher{transport: transport, settings: c}
	s, file, err := f.fetch(ctx, Scope{}, url, userAgent, &entry{})
	if err != nil {
		return Resolution{}, fmt.Errorf("fetch %s: %w", url, err)
	}
	res := Resolution{State: c.Classify(s), Snapshot: s}
	res.setFile(file)
	return res, nil
}

// ErrBusy says that as many large robots.txt files as may be are being read, so that the origin's could not be.
var ErrBusy = errors.New("too many large robots.txt files are being read at once")

// A fault is an error of a RoundTripper that says whether the origin is at fault. Any other error is an outage of the origin.
type fault interface {
	error
	// OriginAtFault reports whether the cause lies in the URL's origin, such as a name that does not resolve.
	// Otherwise the gate is the cause, or its way to all origins.
	OriginAtFault() bool
	// Outage reports whether the origin counts as unreachable. Otherwise the request was not sent, and nothing is
	// kept of it, unless the origin that was asked for its file redirects to the one at fault.
	Outage() bool
}

// fetch requests the file of a scope at a URL (RFC 9309, 2.3), follows redirects, and returns the
// answer, with the file if it has one. It carries nothing of a client. The origin may
// confirm the good copy in prior, if there is one, instead of sending it again.
//
// The only errors are ErrBusy and each [fault] that is no outage; one of an origin only if the first URL is its, and not
// a redirect. Every other failure is an answer.
func (f *fetcher) fetch(ctx context.Context, of Scope, start, userAgent string, prior *entry) (*Snapshot, content, error) {
	ctx, cancel := context.WithTimeout(ctx, f.settings.Timeout)
	defer cancel()
	at := start
	for hop := 0; ; hop++ {
		asked := prior.Good.validators(at)
		s := &Snapshot{URL: at}
		file, next, err := f.get(ctx, of, s, userAgent, asked)
		whose, told := errors.AsType[fault](err)
		switch {
		case errors.Is(err, ErrBusy), told && !whose.Outage() && (hop == 0 || !whose.OriginAtFault()):
			return nil, nil, err
		case err != nil:
			return &Snapshot{URL: s.URL, Error: failed(hop, s.URL, f.reason(ctx, err)), Elsewhere: told && !whose.OriginAtFault(), Fetched: time.Now()}, nil, nil
		case s.Status == http.StatusNotModified && len(asked) > 0:
			return confirmed(prior.Good, s), prior.file, nil
		case next == "":
			if s.Error != "" {
				s.Error = failed(hop, s.URL, s.Error)
			}
			return s, file, nil
		case hop == f.settings.MaxRedirects:
			s.Looped = true // RFC 9309, 2.3.1.2: as if there were none
			return s, nil, nil
		}
		at = next
	}
}

// get makes one request, and adds its answer to s. It returns the file, if the answer has it, and where
// it redirects to, if it does. Asked are validators of a copy, which the origin may confirm with a 304.
func (f *fetcher) get(ctx context.Context, of Scope, s *Snapshot, userAgent string, asked http.Header) (file content, next string, err error) {
	target, err := canonical.ParseURL(s.URL)
	if err != nil {
		return nil, "", err
	}
	req := (&http.Request{Method: http.MethodGet, URL: target.URL(), Host: target.Host, Header: http.Header{
		// An empty value keeps net/http from adding its own.
		"User-Agent": {userAgent},
	}}).WithContext(ctx)
	maps.Copy(req.Header, asked)
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()

	s.Status, s.Fetched = resp.StatusCode, time.Now()
	s.Lifetime, s.Retry = cache.Lifetime(resp.Header, s.Fetched), cache.RetryAfter(resp.Header, s.Fetched)
	confirms := s.Status == http.StatusNotModified && len(asked) > 0
	if s.good() || confirms {
		s.ETag, s.Modified = validator(resp.Header, "ETag"), validator(resp.Header, "Last-Modified")
	}
	switch {
	case confirms:
		return nil, "", nil
	case s.good():
		data, err := f.read(ctx, resp)
		if err != nil {
			return nil, "", err
		}
		return f.settings.keepFile(s, parse(of, data, int(f.settings.MaxBytes))), "", nil
	case slices.Contains([]int{301, 302, 303, 307, 308}, s.Status):
		resp.Request = req // to which a relative Location refers
		next, err := location(resp)
		return nil, next, err
	}
	if f.settings.Classify(s) == Unreachable || s.Status == http.StatusTooManyRequests {
		s.Error = fmt.Sprintf("the origin answered %d", s.Status)
	}
	return nil, "", nil
}

// validators returns the header that asks whether a copy is still valid. A copy that was
// cut is fetched anew, since the limit may have changed, and so is a page, as robots.html may have.
func (s *Snapshot) validators(at string) http.Header {
	h := http.Header{}
	if s == nil || s.URL != at || s.Cut || s.HTML {
		return h // validators belong to the URL of their response
	}
	if s.ETag != "" {
		h.Set("If-None-Match", s.ETag)
	}
	if s.Modified != "" {
		h.Set("If-Modified-Since", s.Modified)
	}
	return h
}

// confirmed is the prior copy after a 304, with the fields of that (RFC 9111, 4.3.4).
func confirmed(prior, answer *Snapshot) *Snapshot {
	s := *prior
	s.Fetched, s.Failures, s.Since = answer.Fetched, 0, time.Time{}
	if answer.Lifetime >= 0 {
		s.Lifetime = answer.Lifetime
	}
	s.ETag = cmp.Or(answer.ETag, s.ETag)
	s.Modified = cmp.Or(answer.Modified, s.Modified)
	return &s
}

// read returns the body, decoded and bounded. A body cut short by the origin is
// an error: the rules that are missing might be those that deny.
func (f *fetcher) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	body, err := coding.NewReader(resp.Body, resp.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	// One byte past the limit shows whether it was reached; the rest of an
	// endless file is never read.
	bounded := io.LimitReader(body, f.settings.MaxBytes+1)
	var data bytes.Buffer
	data.Grow(int(min(max(resp.ContentLength, 0), smallBody)) + bytes.MinRead) // then a body that is not encoded fits
	if n, err := data.ReadFrom(io.LimitReader(bounded, smallBody)); err != nil || n < smallBody {
		return data.Bytes(), err
	}
	if f.large != nil {
		select {
		case f.large <- struct{}{}:
			defer func() { <-f.large }()
		case <-ctx.Done():
			return nil, ErrBusy // it says nothing about the origin
		}
	}
	_, err = data.ReadFrom(bounded)
	return data.Bytes(), err
}

// validator returns a header that will be kept and sent back, unless it is too long.
func validator(h http.Header, name string) string {
	v := h.Get(name)
	if len(v) > maxValidator {
		return ""
	}
	return v
}

// location returns where a redirect leads.
func location(resp *http.Response) (string, error) {
	to, err := resp.Location()
	switch {
	case errors.Is(err, http.ErrNoLocation):
		return "", errors.New("the origin redirects without saying where to")
	case err != nil || len(resp.Header.Get("Location")) > maxURL:
		return "", errors.New("the origin redirects to a text that is no URL, or too long")
	}
	to.Fragment, to.RawFragment = "", ""
	target, err := canonical.ParseURL(to.String())
	if err != nil {
		return "", fmt.Errorf("the origin redirects to a URL that can't be used: %w", err)
	}
	return target.String(), nil
}

// failed says why there is no answer. After a redirect it names the target, since the fault is not the origin's, without
// the query, which may hold secrets.
func failed(hop int, at, why string) string {
	if hop > 0 {
		at, _, _ = strings.Cut(at, "?")
		why = fmt.Sprintf("the redirect to %.150s failed: %s", at, why)
	}
	return shortened(why)
}

// shortened returns a text that is kept, within maxError.
func shortened(text string) string {
	if len(text) <= maxError {
		return text
	}
	return strings.ToValidUTF8(text[:maxError], "") + "…"
}

// reason words an error for the crawler and the log, in the words of a RoundTripper if it has some, and without parts
// that only a programmer can read.
func (f *fetcher) reason(ctx context.Context, err error) string {
	var op *net.OpError
	var worded interface{ Reason() string }
	switch {
	case errors.As(err, &worded):
		return worded.Reason()
	case ctx.Err() != nil:
		return "no complete answer within robots.timeout"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer was cut short"
	case errors.Is(err, io.EOF):
		return "the origin closed the connection without an answer"
	case errors.As(err, &op) && op.Op == "dial":
		return strings.TrimPrefix(op.Error(), "dial ")
	}
	return err.Error()
}
