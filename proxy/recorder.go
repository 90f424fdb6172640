package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"

	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/client"
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
	client       *netconn.Conn // nil: not a connection of the gate's listener
	memory       memory.Reservation
	disconnect   *client.DisconnectDetector // nil: net/http detects it
	hijacked     net.Conn
	http1        bool
	deadlineOnly bool // HTTP/1 without a request body: a write deadline is all that is needed
	closeAfter   bool // close the connection after this answer; HTTP/1 only
	wrote        bool
	answered     time.Time // when wrote was set
	status       int
	bytes        int64
	written      int  // of the body, as far as it matters for headSent
	headSent     bool // in HTTP/2
}

// begin makes w the recorder of the response to r.
func (w *recorder) begin(to http.ResponseWriter, r *http.Request, p *Proxy) {
	w.ResponseWriter, w.control = to, *http.NewResponseController(to) // copied to save an allocation
	w.open, w.http1 = &p.open, r.ProtoMajor == 1
	w.deadlineOnly = w.http1 && r.ContentLength == 0
	w.limit.Init(p.Silence, w.breakOff)
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
		if w.closeAfter = w.closeAfter || w.http1 && w.upload != nil && !w.upload.Ended(); w.closeAfter {
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
	if !w.http1 || w.client == nil || len(p) < 2<<10 {
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
	if !w.http1 && w.client != nil && w.written > 0 && !w.headSent {
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

// release returns the connection to net/http, which still sends what it has buffered, and in
// HTTP/1 reads the rest of the body. It sets deadlines for both, which net/http lifts. A body
// that the client holds back until a 100 is not read.
func (w *recorder) release(r *http.Request, idle time.Duration) {
	w.limit.End()
	begun := w.upload != nil && w.upload.Limit.End()
	if w.hijacked != nil {
		return
	}
	w.joinHead()
	now := time.Now()
	_ = w.control.SetWriteDeadline(now.Add(idle + w.limit.Idle())) // net/http may read the body first
	switch {
	case !w.http1:
	case r.ContentLength == 0 || w.upload != nil && w.upload.Ended():
	case !begun && hasToken(r.Header["Expect"], "100-continue"):
		_ = w.control.SetReadDeadline(now)
	case w.closeAfter: // for a client that sends everything before it reads
		_ = w.control.SetReadDeadline(now.Add(client.LingerTime))
		connOf(r).client.Linger()
	default:
		_ = w.control.SetReadDeadline(now.Add(idle))
	}
}

// Hijack returns the connection, which is closed when the exchange ends, since goproxy leaves
// it open.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.disconnect != nil {
		w.disconnect.Stop()
	}
	conn, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("the connection can't be switched: %w", err)
	}
	_ = conn.SetDeadline(time.Time{})
	w.hijacked = conn
	w.open.add(conn)
	return conn, rw, nil
}

func (w *recorder) closeHijacked() {
	if w.hijacked != nil {
		w.hijacked.Close()
		w.open.remove(w.hijacked)
	}
}
