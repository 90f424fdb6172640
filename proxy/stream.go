package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/memory"
)

// A stream is a response's body on its way to the client.
type stream struct {
	body   body.Ready
	x      *exchange
	resp   *http.Response
	limit  body.IdleTimer // for the origin to send a piece
	closed sync.Once
}

func newStream(x *exchange, resp *http.Response, silence time.Duration) *stream {
	s := &stream{body: body.AsReady(resp.Body), x: x, resp: resp}
	s.limit.Init(silence, func() { s.Close() })
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	s.limit.Start()
	n, err := s.body.Read(p)
	s.limit.Pause()
	if err != nil {
		s.ended(err)
	}
	return n, err
}

// Close is for all who want the body closed: goproxy does so twice. At each Close of
// an HTTP/2 body Transport gives back once more the window of what was not read. In
// the end that panics with the lock of its pool held (golang/go#58456), and no HTTP/2
// request to any origin ever returns.
func (s *stream) Close() (err error) {
	s.closed.Do(func() { err = s.body.Close() })
	return err
}

// ended notes how a body ends. One that breaks off must not look complete to
// the client, whose connection is therefore broken off too.
func (s *stream) ended(err error) {
	switch {
	case err == io.EOF:
		dropTrailer(s.resp.Trailer) // known only now
		return
	case s.limit.Fired():
		s.x.Error = fmt.Sprintf("the origin was silent for %v in the middle of its response", s.limit.Idle())
	default:
		s.x.Error = "the response broke off: " + err.Error()
	}
	s.x.aborted = true
}

// dropTrailer removes what a trailer must not say: what frames or routes a
// message (RFC 9110, 6.5.1), and what only the gate may say.
func dropTrailer(h http.Header) {
	dropHopByHop(h)
	dropOwn(h)
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Host", "Alt-Svc"} {
		delete(h, name)
	}
}

// bufferSize is that of a piece of a body, in bytes: most pages fit. Without memory for
// that it is smallBuffer.
const (
	bufferSize  = 48 << 10
	smallBuffer = 8 << 10
)

var (
	buffers      = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
)

// WriteTo copies the body as it comes: whatever more may be waited for, what is
// there is sent. It is what io.Copy calls.
func (s *stream) WriteTo(w io.Writer) (written int64, err error) {
	if s.x.out.memory.Take(bufferSize, memory.ForBuffers) {
		buf := buffers.Get().(*[bufferSize]byte)
		defer buffers.Put(buf)
		return s.writeTo(w, buf[:])
	}
	buf := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(buf)
	return s.writeTo(w, buf[:])
}

func (s *stream) writeTo(w io.Writer, buf []byte) (written int64, err error) {
	defer s.limit.End()
	flusher, _ := w.(http.Flusher)
	n, err := s.first(buf)
	if err == nil {
		// So that a page of the usual size is one write. A longer one is many anyway.
		var more int
		more, err = s.body.ReadArrived(buf[n:])
		if n += more; err != nil {
			s.ended(err)
		}
	}
	for {
		if n > 0 {
			m, werr := w.Write(buf[:n])
			written += int64(m)
			if werr != nil {
				s.x.Error = "the client left"
				if errors.Is(werr, os.ErrDeadlineExceeded) {
					s.x.Error = "the client does not read its response"
				}
				return written, werr
			}
			// The end of the response flushes too; and of a full buffer net/http
			// keeps nothing back, since it is larger than its own.
			if flusher != nil && err == nil && n < len(buf) {
				flusher.Flush()
			}
		}
		if err == io.EOF {
			s.x.out.dropUpload()
			return written, nil
		}
		if err != nil {
			s.x.out.Flush() // with what has come of it, the client sees what broke off
			return written, err
		}
		n, err = s.Read(buf)
	}
}

// headPatience is how long a response's head waits for the beginning of its
// body. To send each in a write of its own costs much where both are at hand; but
// an event stream may say nothing for an hour.
const headPatience = 10 * time.Millisecond

// first reads the beginning of the body, and flushes the head meanwhile if it
// has to wait.
func (s *stream) first(p []byte) (n int, err error) {
	if s.body.AtHand() {
		if n, err = s.body.Read(p); err != nil {
			s.ended(err)
		}
		return n, err
	}
	var mu sync.Mutex // only one goroutine may use the response at a time
	came, flushed := false, false
	timer := time.AfterFunc(headPatience, func() {
		mu.Lock()
		defer mu.Unlock()
		if !came {
			s.x.out.Flush()
			s.limit.Start()
			flushed = true
		}
	})
	n, err = s.body.Read(p)
	timer.Stop()
	mu.Lock()
	defer mu.Unlock()
	came = true
	if flushed {
		s.limit.Pause()
	}
	if err != nil {
		s.ended(err)
	}
	return n, err
}
