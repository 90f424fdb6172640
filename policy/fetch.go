package policy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"robotsgate/internal/coding"
)

var (
	// ErrProhibited is what a RoundTripper wraps when the operator's egress
	// rules forbid a destination. Such a request gets no decision.
	ErrProhibited = errors.New("destination is prohibited")

	// ErrParent is what a RoundTripper wraps when the parent proxy can't be
	// reached, so that nobody looks for the fault at the origin.
	ErrParent = errors.New("the parent proxy can't be reached")

	// ErrBusy says that as many large robots.txt files are being read as may be, so
	// that nothing is known about the origin.
	ErrBusy = errors.New("too many large robots.txt files are being read at once")
	// ErrExhausted is what a RoundTripper wraps when the gate's own machine could not open a
	// connection, because it had no file descriptor, local port or memory left. That says
	// nothing about the origin: it is not kept, and there is no decision.
	ErrExhausted = errors.New("the gate is out of resources for a connection")
	// ErrNoHost says that the origin's name does not resolve, so that there is
	// nothing to decide about.
	ErrNoHost = errors.New("host name does not resolve")
)

// What clients and origins say is kept and sent on up to these lengths, in bytes.
const (
	maxUserAgent = 1024
	maxURL       = 2048 // of a redirect's destination
	maxValidator = 256
	maxError     = 256
)

// A fetcher asks origins for their robots.txt.
type fetcher struct {
	transport http.RoundTripper
	robots    *Robots
	large     chan struct{} // see newLarge; nil: all may be read at once
}

const (
	// smallBody is what is read of every body at once, in bytes: nearly all are smaller.
	smallBody = 32 << 10
	// largeBodies bounds what the others take while they are read, in bytes.
	largeBodies = 64 << 20
)

// newLarge returns the places for bodies beyond smallBody: else as many origins as are
// asked at once could have max_bytes held of each. Who needs one takes it for all the
// rest: places that are taken bit by bit could be held by those that wait for more.
func newLarge(maxBytes int) chan struct{} {
	return make(chan struct{}, max(1, largeBodies/max(1, maxBytes)))
}

// fetch asks an origin for its robots.txt, RFC 9309, 2.3, and returns what it
// answered. Of the asking client only the User-Agent is sent. Prior, if not
// nil, is a good copy that the origin may confirm instead of sending it again.
// The only errors are ErrBusy and ErrExhausted, and ErrProhibited and ErrNoHost for the origin itself; every
// other failure is an answer.
func (f *fetcher) fetch(ctx context.Context, origin, userAgent string, prior *Snapshot) (*Snapshot, error) {
	return f.follow(ctx, origin+"/robots.txt", userAgent, prior)
}

// Fetch asks for the file at a URL as an Engine asks an origin for its robots.txt,
// and says what a crawler makes of the answer: Fresh, Unavailable or Unreachable.
// It is for those who want to look at the file itself.
func (r *Robots) Fetch(ctx context.Context, transport http.RoundTripper, url, userAgent string) (*Snapshot, State, error) {
	f := fetcher{transport: transport, robots: r}
	s, err := f.follow(ctx, url, userAgent, nil)
	if err != nil {
		return nil, "", fmt.Errorf("fetch %s: %w", url, err)
	}
	return s, r.class(s), nil
}

// follow is fetch for any URL: it follows redirects. The answer varies if any response on
// the way to it does.
func (f *fetcher) follow(ctx context.Context, start, userAgent string, prior *Snapshot) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, f.robots.Timeout)
	defer cancel()
	userAgent = sendable(userAgent)
	at, varied := start, false
	for hop := 0; ; hop++ {
		asked := prior.validators(at)
		s, next, err := f.get(ctx, at, userAgent, asked)
		if s != nil {
			varied = varied || s.Varies
			s.Varies = varied
		}
		switch {
		case err != nil && hop == 0 && errors.Is(err, ErrProhibited):
			return nil, err
		case errors.Is(err, ErrBusy), errors.Is(err, ErrExhausted):
			return nil, err
		case err != nil && hop == 0 && unresolved(err):
			return nil, fmt.Errorf("%w: %w", ErrNoHost, err)
		case err != nil:
			s = f.failure(at, reason(ctx, err))
			s.Varies = varied
			return s, nil
		case s.Status == http.StatusNotModified && len(asked) > 0:
			if !varied || prior.Varies {
				return confirmed(prior, s), nil
			}
			// The copy was for all: another crawler may have brought it. Its confirmation is
			// not this crawler's answer, so ask again, for all of it.
			prior, next, hop = nil, start, -1
		case next == "":
			return s, nil
		case hop == f.robots.MaxRedirects:
			s.Looped = true // RFC 9309, 2.3.1.2: as if there were none
			return s, nil
		}
		at = next
	}
}

// sendable returns a User-Agent that net/http sends. The error it has for
// others would pass for a failure of the origin, and close it to everybody.
func sendable(userAgent string) string {
	agent := []byte(userAgent[:min(len(userAgent), maxUserAgent)])
	for i, c := range agent {
		if c < ' ' || c == 0x7f {
			agent[i] = ' '
		}
	}
	return strings.TrimSpace(string(agent))
}

// get makes one request. It returns the answer, and where it redirects to.
// Asked are validators of a copy, which the origin may confirm with a 304.
func (f *fetcher) get(ctx context.Context, at, userAgent string, asked http.Header) (s *Snapshot, next string, err error) {
	target, err := ParseURL(at)
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

	now := time.Now()
	s = &Snapshot{
		URL: at, Status: resp.StatusCode, Fetched: now, Lifetime: lifetime(resp.Header, now), Retry: retryAfter(resp.Header, now),
		Varies: varies(resp.Header),
	}
	confirms := s.Status == http.StatusNotModified && len(asked) > 0
	if s.good() || confirms {
		s.ETag, s.Modified = validator(resp.Header, "ETag"), validator(resp.Header, "Last-Modified")
	}
	switch {
	case confirms:
		return s, "", nil
	case s.good():
		return s, "", f.read(ctx, s, resp)
	}
	if next, err = location(resp, at); next != "" || err != nil {
		return s, next, err
	}
	if f.robots.class(s) == Unreachable || s.Status == http.StatusTooManyRequests {
		s.Error = fmt.Sprintf("the origin answered %d", s.Status)
	}
	return s, "", nil
}

// validators returns the header that asks whether a copy still holds. What was
// cut is fetched anew: the limit may be another one by now.
func (s *Snapshot) validators(at string) http.Header {
	h := http.Header{}
	if s == nil || s.URL != at || s.Cut {
		return h // validators belong to the URL that sent them
	}
	if s.ETag != "" {
		h.Set("If-None-Match", s.ETag)
	}
	if s.Modified != "" {
		h.Set("If-Modified-Since", s.Modified)
	}
	return h
}

// confirmed is the prior copy after a 304, with what came with that (RFC 9111, 4.3.4). A copy
// that varies goes on to do so, also where the 304 leaves its Vary out.
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

// read takes the body, decoded and bounded. A body cut short by the origin is
// an error: rules that are missing might be those that deny.
func (f *fetcher) read(ctx context.Context, s *Snapshot, resp *http.Response) error {
	body, err := coding.NewReader(resp.Body, resp.Header.Values("Content-Encoding"))
	if err != nil {
		return err
	}
	defer body.Close()
	// One byte past the limit tells whether it was reached; the rest of an
	// endless file is never read.
	data, err := f.readBounded(ctx, io.LimitReader(body, int64(f.robots.MaxBytes)+1))
	if err != nil {
		return err
	}
	s.setBody(data, f.robots.MaxBytes)
	return nil
}

// readBounded reads all of a body. What is large waits for its place.
func (f *fetcher) readBounded(ctx context.Context, body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, smallBody))
	if err != nil || len(data) < smallBody {
		return data, err
	}
	if f.large != nil {
		select {
		case f.large <- struct{}{}:
			defer func() { <-f.large }()
		case <-ctx.Done():
			return nil, ErrBusy // it says nothing about the origin
		}
	}
	rest, err := io.ReadAll(body)
	return append(data, rest...), err
}

// validator returns a header that will be kept and sent back, unless it is
// longer than anybody needs.
func validator(h http.Header, name string) string {
	v := h.Get(name)
	if len(v) > maxValidator {
		return ""
	}
	return v
}

// location returns where a redirect leads, "" if the response is none.
func location(resp *http.Response, at string) (string, error) {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
	default:
		return "", nil
	}
	value := resp.Header.Get("Location")
	switch {
	case value == "":
		return "", errors.New("the origin redirects without saying where to")
	case len(value) > maxURL:
		return "", fmt.Errorf("the origin redirects to a URL of %d bytes", len(value))
	}
	base, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	to, err := base.Parse(value)
	if err != nil {
		return "", errors.New("the origin redirects to something that is no URL")
	}
	to.Fragment, to.RawFragment = "", ""
	target, err := ParseURL(to.String())
	if err != nil {
		return "", fmt.Errorf("the origin redirects to a URL that can't be used: %w", err)
	}
	return target.String(), nil
}

// failure is the answer of an origin that gave none.
func (f *fetcher) failure(at, reason string) *Snapshot {
	if len(reason) > maxError {
		reason = strings.ToValidUTF8(reason[:maxError], "") + "…"
	}
	return &Snapshot{URL: at, Error: reason, Fetched: time.Now()}
}

// reason words an error for the crawler and the log, without what only a
// programmer can read.
func reason(ctx context.Context, err error) string {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case unresolved(err):
		return "a redirect leads to a name that does not resolve" // the resolver's address is nobody's business
	case errors.Is(err, ErrParent):
		return err.Error() + "; check egress.proxy"
	case errors.As(err, &certificate):
		return certificate.Err.Error() + "; if its CA is your own, name it in egress.ca_file"
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

// unresolved reports whether an error is the resolver's.
func unresolved(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && !errors.Is(err, ErrParent)
}
