// Package response sends responses to clients: it has the ResponseWriter of a request, the body of an origin's response
// on its way, what takes the place of a body, and the 1xx responses before it.
//
// [Signals] are what is known of a request and its response. [Annotate] says it in the fields that the gate adds.
package response

// Where to change what.
//
//	a response header:
//		a file with its annotator, a row of the table in annotate.go, and docs/annotations.md. Model: annotate_test.go.
//		TestReadmeServing wants it in a response to a file of internal/demo/pages, once the documentation names it
//	a response header, from lines of robots.txt:
//		the same: Group.Fields and File.Fields of policy/robotstxt/field.go return the lines by name. A row of Kept in
//		policy/robotstxt/scanner.go keeps all of them in any file

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/client"
)

// A Request is what a Recorder needs to know of the request.
type Request struct {
	Conn       *client.Conn
	Header     http.Header
	HTTP1      bool
	HasBody    bool
	CloseAfter bool // close the connection after the answer; HTTP/1 only
}

// A Recorder is the ResponseWriter of a request. It sends the response to the client, within
// time limits, and records its status and size. It has no ReadFrom on purpose: io.Copy would
// use it, at the cost of one more write for every small body.
type Recorder struct {
	http.ResponseWriter // nil: the client must receive no answer

	Upload *body.Upload // nil if the request has no body, or none for the origin

	// These are for the record.
	Hijacked net.Conn
	Wrote    bool
	Answered time.Time // when Wrote was set
	Status   int
	Bytes    int64

	informational informational // before the response
	request       Request
	control       http.ResponseController
	limit         body.IdleTimer // for a piece to be written
	limited       bool           // a write may wait for more than the socket, whose time the listener limits
	open          *client.OpenConns
	closeAfter    bool // close the connection after this answer; HTTP/1 only
}

// Begin makes w the recorder of the response to a request. Hijacked connections are in open while they are in use.
func (w *Recorder) Begin(to http.ResponseWriter, r Request, open *client.OpenConns, silence time.Duration) {
	w.ResponseWriter, w.control = to, *http.NewResponseController(to) // copied to save an allocation
	w.request, w.open, w.closeAfter = r, open, r.CloseAfter
	w.limited = !r.HTTP1 || r.HasBody // for a window, or for the rest of the request's body
	w.limit.Init(silence, w.breakOff)
}

// Receive returns the request's body, from which each piece must arrive within idle. A client that waits for a 100 gets
// it when the body is read.
func (w *Recorder) Receive(r *http.Request, idle time.Duration) *body.Upload {
	w.Upload = body.NewUpload(r, &w.control, idle)
	if httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
		w.Upload.Proceed = w.informational.sendContinue
	}
	return w.Upload
}

// Discard records an answer that is not sent.
func (w *Recorder) Discard(resp *http.Response) {
	w.Wrote, w.Answered, w.Status, w.Bytes = true, time.Now(), resp.StatusCode, resp.ContentLength
}

func (w *Recorder) breakOff() {
	_ = w.control.SetWriteDeadline(time.Now())
	_ = w.control.SetReadDeadline(time.Now()) // of the rest of a body, which net/http may be discarding
}

// Unwrap is for http.ResponseController.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *Recorder) WriteHeader(status int) {
	if !w.Wrote && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.Wrote, w.Answered, w.Status = true, time.Now(), status
		if w.Upload != nil {
			w.Upload.Limit.End() // an answered client may stop its upload and read
		}
		if h := w.Header(); len(h["Content-Type"]) == 0 {
			h["Content-Type"] = nil // keeps net/http from guessing one
		}
		// Before it answers, net/http reads the rest of a request body, unless the connection
		// will be closed. Transport would then miss bytes of the upload and give up the
		// response.
		if w.closeAfter = w.closeAfter || w.request.HTTP1 && w.Upload != nil && !w.Upload.Ended(); w.closeAfter {
			w.Header()["Connection"] = []string{"close"}
		}
		if status == http.StatusSwitchingProtocols {
			w.Header()["Connection"], w.Header()["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
		}
	}
	if status < 200 { // net/http sends it at once
		w.beginWrite()
		defer w.endWrite()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Recorder) Write(p []byte) (int, error) {
	if !w.Wrote {
		w.WriteHeader(http.StatusOK)
	}
	w.beginWrite()
	n, err := w.ResponseWriter.Write(p)
	w.endWrite()
	w.Bytes += int64(n)
	return n, err
}

// Flush sends what is buffered.
func (w *Recorder) Flush() {
	w.beginWrite()
	_ = w.control.Flush() // the next write notices a client that has disconnected
	w.endWrite()
}

func (w *Recorder) beginWrite() {
	if w.limited {
		w.limit.Start()
	}
}

func (w *Recorder) endWrite() {
	if w.limited {
		w.limit.Pause()
	}
}

// dropUpload stops reading an upload whose answer has been sent.
func (w *Recorder) dropUpload() {
	if w.Upload != nil && !w.Upload.Ended() {
		_ = w.control.SetReadDeadline(time.Now())
	}
}

// End closes the hijacked connection.
func (w *Recorder) End() {
	if w.Hijacked != nil {
		w.Hijacked.Close()
		w.open.Remove(w.Hijacked)
	}
}

// Release returns the connection to net/http, which still sends what it has buffered over HTTP/2, and reads the rest of
// the body over HTTP/1. It sets a deadline for that, which net/http lifts. A body that the client holds back until a 100
// is not read.
func (w *Recorder) Release(idle time.Duration) {
	w.limit.End()
	begun := w.Upload != nil && w.Upload.Limit.End()
	if w.Hijacked != nil || w.ResponseWriter == nil {
		return
	}
	now := time.Now()
	switch {
	case !w.request.HTTP1:
		_ = w.control.SetWriteDeadline(now.Add(w.limit.Idle()))
	case !w.request.HasBody || w.Upload != nil && w.Upload.Ended():
	case !begun && httpguts.HeaderValuesContainsToken(w.request.Header["Expect"], "100-continue"):
		_ = w.control.SetReadDeadline(now)
	case w.closeAfter: // for a client that sends everything before it reads
		_ = w.control.SetReadDeadline(now.Add(client.LingerTime))
		w.request.Conn.Linger()
	default:
		_ = w.control.SetReadDeadline(now.Add(idle))
	}
}

// maxDrain bounds what is read of a refused request's body, in bytes.
const maxDrain = 16 << 20

// Drain reads the body of a request that the gate answers itself: many clients send all of it
// before they read, and would see a broken connection in place of the answer. A client that
// waits for a 100 gets none.
func (w *Recorder) Drain(r *http.Request, timeout time.Duration) {
	if !w.request.HasBody || httpguts.HeaderValuesContainsToken(w.request.Header["Expect"], "100-continue") {
		return
	}
	_ = w.control.SetReadDeadline(time.Now().Add(timeout))
	if _, err := io.CopyN(io.Discard, r.Body, maxDrain); err != io.EOF {
		w.closeAfter = w.request.HTTP1 // the rest is not read
	}
}

// Hijack returns the connection, which is closed when the exchange ends, since goproxy leaves
// it open.
func (w *Recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("the connection can't be switched: %w", err)
	}
	w.Take(conn)
	return conn, rw, nil
}

// Take notes that the connection is hijacked. It is not read by others any more.
func (w *Recorder) Take(conn net.Conn) {
	_ = conn.SetDeadline(time.Time{})
	w.Hijacked = conn
	w.open.Add(conn)
}
