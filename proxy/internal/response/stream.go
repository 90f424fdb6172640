package response

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/header"
)

// A Stream is a response's body on its way to the client.
type Stream struct {
	body   io.ReadCloser
	out    *Recorder
	resp   *http.Response
	limit  body.IdleTimer // for the origin to send a piece
	closed sync.Once
	// These are for the goroutine that reads the body.
	Failed string // why not all of the body was sent, for the record
	Broke  bool   // the body broke off: the client's connection must too
}

// NewStream returns the body of resp, for out. It ends if the origin sends nothing for as long as silence.
func NewStream(out *Recorder, resp *http.Response, silence time.Duration) *Stream {
	s := &Stream{body: resp.Body, out: out, resp: resp}
	s.limit.Init(silence, func() { s.Close() })
	return s
}

// Tee makes the beginning of the body, about as many bytes as most, readable by a scanner too.
func (s *Stream) Tee(most int) *body.Tee {
	tee := body.NewTee(s.body, most)
	s.body = tee
	return tee
}

func (s *Stream) Read(p []byte) (int, error) {
	s.limit.Start()
	n, err := s.body.Read(p)
	s.limit.Pause()
	if err != nil {
		s.ended(err)
	}
	return n, err
}

// Close closes the body once, though goproxy calls it twice: each Close of an HTTP/2 body
// returns the window of the unread bytes once more. Transport finally panics while it holds the
// lock of its pool (golang/go#58456), and no HTTP/2 request to any origin ever returns.
func (s *Stream) Close() (err error) {
	s.closed.Do(func() { err = s.body.Close() })
	return err
}

// ended records how a body ends. A body that breaks off must not look complete to the client,
// so the client's connection is broken off too.
func (s *Stream) ended(err error) {
	switch {
	case err == io.EOF:
		header.Trailer(s.resp.Trailer) // known only now
		return
	case s.limit.Fired():
		s.Failed = fmt.Sprintf("the origin was silent for %v in the middle of its response", s.limit.Idle())
	default:
		s.Failed = "the response broke off: " + err.Error()
	}
	s.Broke = true
}

// bufferSize is the size of the buffer for a body, in bytes: most pages fit into it.
const bufferSize = 48 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// WriteTo copies the body, and flushes each piece as it arrives. io.Copy calls it.
func (s *Stream) WriteTo(w io.Writer) (written int64, err error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	return s.writeTo(w, buf[:])
}

func (s *Stream) writeTo(w io.Writer, buf []byte) (written int64, err error) {
	defer s.limit.End()
	flusher, _ := w.(http.Flusher)
	send := func(p []byte) error {
		m, err := w.Write(p)
		written += int64(m)
		if err != nil {
			s.Failed = "the client left"
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				s.Failed = "the client does not read its response"
			}
		}
		return err
	}
	p, err, failed := s.readFirst(buf, send)
	for {
		if failed == nil && len(p) > 0 {
			failed = send(p)
		}
		if failed != nil {
			return written, failed
		}
		// The end of the response flushes too, and net/http buffers nothing of a write
		// that is larger than its own buffer.
		if flusher != nil && err == nil && len(p) > 0 && len(p) < len(buf) {
			flusher.Flush()
		}
		if err == io.EOF {
			s.out.dropUpload()
			return written, nil
		}
		if err != nil {
			s.out.Flush() // so that the client sees how far the response came
			return written, err
		}
		var n int
		n, err = s.Read(buf)
		p = buf[:n]
	}
}

// HeadDelay is how long a response's head waits for the first bytes of its body, so that both go out in one write. It
// must be short: an event stream may send nothing for an hour.
const HeadDelay = 10 * time.Millisecond

// readFirst reads the first bytes of the body: as many as fit into buf and arrive within HeadDelay. After that it sends
// and flushes what has come, and returns what comes next. failed is the error of send.
func (s *Stream) readFirst(buf []byte, send func([]byte) error) (p []byte, err, failed error) {
	if s.resp.ContentLength == 0 { // a response that ends with its header must stay one, for gRPC
		n, err := s.Read(buf)
		return buf[:n], err, nil
	}
	var mu sync.Mutex // only one goroutine may use the response at a time
	n, late, ended := 0, false, false
	timer := time.AfterFunc(HeadDelay, func() {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		late = true
		if n > 0 {
			failed = send(buf[:n])
		}
		s.out.Flush()
		s.limit.Start()
	})
	defer timer.Stop()
	for {
		m, err := s.body.Read(buf[n:])
		mu.Lock()
		first := 0
		if late {
			first = n
			s.limit.Pause()
		}
		n += m
		ended = late || err != nil || n == len(buf)
		mu.Unlock()
		if !ended {
			continue
		}
		if err != nil && failed == nil { // else the client is the cause
			s.ended(err)
		}
		return buf[first:n], err, failed
	}
}

// Switched returns the body of a 101 response: the connection to the origin, which relay joins to that of the client.
func Switched(origin io.ReadCloser, out *Recorder, relay *body.Relay) io.ReadCloser {
	return &switched{origin, out, relay}
}

// A switched body is the connection to the origin after a handshake.
type switched struct {
	io.ReadCloser
	out   *Recorder
	relay *body.Relay
}

// WriteTo relays the tunnel until either side closes its connection. io.Copy calls it when the
// handshake has been answered.
func (s *switched) WriteTo(io.Writer) (int64, error) {
	origin, ok := s.ReadCloser.(io.ReadWriteCloser)
	if !ok {
		return 0, errors.New("the connection to the origin is not writable")
	}
	conn, rw, err := s.out.Hijack()
	if err != nil {
		return 0, err
	}
	s.out.Bytes = s.relay.Between(client.Buffered(conn, rw.Reader), origin)
	return s.out.Bytes, nil
}
