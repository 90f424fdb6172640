package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/header"
	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/netconn"
)

// A recorder is the ResponseWriter of a request. It sends the response to the client, within
// time limits, and records its status and size. It has no ReadFrom on purpose: io.Copy would
// use it, at the cost of one more write for every small body.
type recorder struct {
	http.ResponseWriter
	control      http.ResponseController
	limit        body.IdleTimer // for the client to read a piece
	upload       *body.Upload   // nil if the request has no body, or none for the origin
	open         *openConns
	in           *inbound
	client       *netconn.Conn // nil: not a connection of the gate's listener
	memory       memory.Reservation
	disconnect   *client.DisconnectDetector // nil: net/http detects it
	hijacked     net.Conn
	deadlineOnly bool // HTTP/1 without a request body: a write deadline is all that is needed
	closeAfter   bool // close the connection after this answer; HTTP/1 only
	wrote        bool
	answered     time.Time // when wrote was set
	status       int
	bytes        int64
	written      int  // of the body, as far as it matters for headSent
	headSent     bool // in HTTP/2
}

// begin makes w the recorder of the response to a request. to is nil if the client must receive no answer. Hijacked connections
// are in open while they are in use.
func (w *recorder) begin(to http.ResponseWriter, in *inbound, open *openConns, silence time.Duration) {
	w.ResponseWriter, w.control = to, *http.NewResponseController(to) // copied to save an allocation
	w.in, w.open, w.closeAfter = in, open, in.closeAfter
	w.client, w.memory.Client = in.conn.client.Buffer(), in.conn.client.Memory
	w.deadlineOnly = in.http1() && !in.hasBody
	w.limit.Init(silence, w.breakOff)
}

// discard records an answer that is not sent.
func (w *recorder) discard(resp *http.Response) {
	w.wrote, w.answered, w.status, w.bytes = true, time.Now(), resp.StatusCode, resp.ContentLength
}

// clearHeader removes what was set for an answer that has not been sent.
func (w *recorder) clearHeader() {
	if w.ResponseWriter != nil {
		clear(w.Header())
	}
}

func (w *recorder) breakOff() {
	_ = w.control.SetWriteDeadline(time.Now())
	_ = w.control.SetReadDeadline(time.Now()) // of the rest of a body, which net/http may be discarding
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if !w.wrote && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.wrote, w.answered, w.status = true, time.Now(), status
		if w.upload != nil {
			w.upload.Limit.End() // an answered client may stop its upload and read
		}
		if h := w.Header(); len(h["Content-Type"]) == 0 {
			h["Content-Type"] = nil // keeps net/http from guessing one
		}
		// Before it answers, net/http reads the rest of a request body, unless the connection
		// will be closed. Transport would then miss bytes of the upload and give up the
		// response.
		if w.closeAfter = w.closeAfter || w.in.http1() && w.upload != nil && !w.upload.Ended(); w.closeAfter {
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

func (w *recorder) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	w.beginWrite()
	if w.written += len(p); w.written >= http2Buffer {
		w.joinHead()
	}
	n, err := w.writeJoined(p)
	w.endWrite()
	w.bytes += int64(n)
	return n, err
}

// writeJoined writes p together with what net/http has buffered of the answer, if both are more
// than its buffer holds.
func (w *recorder) writeJoined(p []byte) (n int, err error) {
	if !w.in.http1() || w.client == nil || len(p) < 2<<10 {
		return w.ResponseWriter.Write(p)
	}
	w.client.Hold()
	defer func() {
		if perr := w.client.Release(); perr != nil && err == nil {
			n, err = 0, perr
		}
	}()
	return w.ResponseWriter.Write(p)
}

// http2Buffer is how much of a body net/http buffers in HTTP/2, in bytes.
const http2Buffer = 4 << 10

// joinHead is called before net/http sends the head of an HTTP/2 answer and, in a second write,
// some of its body: the connection joins the two.
func (w *recorder) joinHead() {
	if !w.in.http1() && w.client != nil && w.written > 0 && !w.headSent {
		w.client.HoldNext(w.limit.Idle())
	}
	w.headSent = true
}

// Flush sends what is buffered.
func (w *recorder) Flush() {
	w.joinHead()
	w.beginWrite()
	_ = w.control.Flush() // the next write notices a client that has disconnected
	w.endWrite()
}

// begun bounds the write that follows: by a deadline, which is cheaper than a timer, if
// nothing else can happen in it.
func (w *recorder) beginWrite() {
	if w.deadlineOnly && w.control.SetWriteDeadline(time.Now().Add(w.limit.Idle())) == nil {
		return
	}
	w.deadlineOnly = false
	w.limit.Start()
}

// done is called after the write. A deadline must not stay: it would pass while there is
// nothing to write, and fail what TLS then writes of its own accord.
func (w *recorder) endWrite() {
	if w.deadlineOnly {
		_ = w.control.SetWriteDeadline(time.Time{})
		return
	}
	w.limit.Pause()
}

// dropUpload stops reading an upload whose answer has been sent.
func (w *recorder) dropUpload() {
	if w.upload != nil && !w.upload.Ended() {
		_ = w.control.SetReadDeadline(time.Now())
	}
}

// end closes the hijacked connection, and ends the watch for a disconnected client.
func (w *recorder) end() {
	w.stopDetector()
	if w.hijacked != nil {
		w.hijacked.Close()
		w.open.remove(w.hijacked)
	}
}

// release returns the connection to net/http, which still sends what it has buffered, and in
// HTTP/1 reads the rest of the body. It sets deadlines for both, which net/http lifts. A body
// that the client holds back until a 100 is not read.
func (w *recorder) release(idle time.Duration) {
	w.limit.End()
	begun := w.upload != nil && w.upload.Limit.End()
	if w.hijacked != nil || w.ResponseWriter == nil {
		return
	}
	w.joinHead()
	now := time.Now()
	_ = w.control.SetWriteDeadline(now.Add(idle + w.limit.Idle())) // net/http may read the body first
	switch {
	case !w.in.http1():
	case !w.in.hasBody || w.upload != nil && w.upload.Ended():
	case !begun && header.HasToken(w.in.header["Expect"], "100-continue"):
		_ = w.control.SetReadDeadline(now)
	case w.closeAfter: // for a client that sends everything before it reads
		_ = w.control.SetReadDeadline(now.Add(client.LingerTime))
		w.in.conn.client.Linger()
	default:
		_ = w.control.SetReadDeadline(now.Add(idle))
	}
}

// maxDrain bounds what is read of a refused request's body, in bytes.
const maxDrain = 16 << 20

// drain reads the body of a request that the gate answers itself: many clients send all of it
// before they read, and would see a broken connection in place of the answer. A client that
// waits for a 100 gets none.
func (w *recorder) drain(r *http.Request, timeout time.Duration) {
	if !w.in.hasBody || header.HasToken(w.in.header["Expect"], "100-continue") {
		return
	}
	_ = w.control.SetReadDeadline(time.Now().Add(timeout))
	if _, err := io.CopyN(io.Discard, r.Body, maxDrain); err != io.EOF {
		w.closeAfter = w.in.http1() // the rest is not read
	}
}

// Hijack returns the connection, which is closed when the exchange ends, since goproxy leaves
// it open.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.stopDetector()
	conn, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("the connection can't be switched: %w", err)
	}
	w.take(conn)
	return conn, rw, nil
}

// take notes that the connection is hijacked. It is not read by others any more.
func (w *recorder) take(conn net.Conn) {
	w.stopDetector()
	_ = conn.SetDeadline(time.Time{})
	w.hijacked = conn
	w.open.add(conn)
}

func (w *recorder) stopDetector() {
	if w.disconnect != nil {
		w.disconnect.Stop()
	}
}

// openConns are hijacked connections, which net/http does not close.
type openConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (o *openConns) add(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[c] = struct{}{}
}

func (o *openConns) remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

func (o *openConns) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns)
}

// wait waits until no connection is left, as [http.Server.Shutdown] does. If the context ends
// before, it returns the context's error.
func (o *openConns) wait(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for o.count() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (o *openConns) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}
