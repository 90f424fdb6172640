package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"

	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/netconn"
)

// A recorder passes a response on to the client and takes down what it was. It
// has no ReadFrom on purpose: io.Copy would use it, at the cost of one more
// write for every small body.
type recorder struct {
	http.ResponseWriter
	control  http.ResponseController
	limit    body.IdleTimer // for the client to read a piece
	upload   *body.Upload   // nil if the request has no body, or none for the origin
	open     *openConns
	client   *netconn.Conn // nil: nobody knows
	presence *presence     // nil: nobody knows
	memory   memory.Reservation
	hijacked net.Conn
	http1    bool
	alone    bool // HTTP/1 without a body of the request: nothing but writes can take long
	last     bool // the connection ends with this answer; HTTP/1 only
	wrote    bool
	answered time.Time // when wrote was set
	status   int
	bytes    int64
	written  int  // of the body, as far as it matters for headSent
	headSent bool // in HTTP/2
}

// begin makes w the recorder of the response to r.
func (w *recorder) begin(to http.ResponseWriter, r *http.Request, p *Proxy) {
	w.ResponseWriter, w.control = to, *http.NewResponseController(to) // copied, so that it need not be allocated
	w.open, w.http1 = &p.open, r.ProtoMajor == 1
	w.alone = w.http1 && r.ContentLength == 0
	w.limit.Init(p.Silence, w.breakOff)
}

func (w *recorder) breakOff() {
	_ = w.control.SetWriteDeadline(time.Now())
	_ = w.control.SetReadDeadline(time.Now()) // of the rest of a body, which net/http may be throwing away
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if !w.wrote && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.wrote, w.answered, w.status = true, time.Now(), status
		if w.upload != nil {
			w.upload.Limit.End() // a client may stop its upload when it is answered, and read
		}
		if h := w.Header(); len(h["Content-Type"]) == 0 {
			h["Content-Type"] = nil // keeps net/http from guessing one
		}
		// Before it answers, net/http reads what is left of a body, unless the
		// connection ends: and so would take it from the origin, whose Transport then
		// gives up the response.
		if w.last = w.last || w.http1 && w.upload != nil && !w.upload.Ended(); w.last {
			w.Header()["Connection"] = []string{"close"}
		}
		if status == http.StatusSwitchingProtocols {
			w.Header()["Connection"], w.Header()["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
		}
	}
	if status < 200 { // which is sent at once
		w.begun()
		defer w.done()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	w.begun()
	if w.written += len(p); w.written >= http2Buffer {
		w.joinHead()
	}
	n, err := w.writeJoined(p)
	w.done()
	w.bytes += int64(n)
	return n, err
}

// writeJoined writes p, and what net/http has of the answer, at once if both are more than its buffer holds.
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

// http2Buffer is what net/http keeps of a body in HTTP/2, in bytes.
const http2Buffer = 4 << 10

// joinHead comes before net/http sends an answer's head in HTTP/2 and, at once, some of its body.
func (w *recorder) joinHead() {
	if !w.http1 && w.client != nil && w.written > 0 && !w.headSent {
		w.client.HoldNext(w.limit.Idle())
	}
	w.headSent = true
}

// Flush sends what is buffered.
func (w *recorder) Flush() {
	w.joinHead()
	w.begun()
	_ = w.control.Flush() // a client that has left is noticed elsewhere
	w.done()
}

// begun bounds the write that follows: by a deadline, which is cheaper than a timer, if
// nothing else can happen in it.
func (w *recorder) begun() {
	if w.alone && w.control.SetWriteDeadline(time.Now().Add(w.limit.Idle())) == nil {
		return
	}
	w.alone = false
	w.limit.Start()
}

// done is called after the write. A deadline must not stay: it would pass while there is
// nothing to write, and fail what TLS then writes of its own accord.
func (w *recorder) done() {
	if w.alone {
		_ = w.control.SetWriteDeadline(time.Time{})
		return
	}
	w.limit.Pause()
}

// dropUpload breaks off what may still be read of an upload whose answer is over.
func (w *recorder) dropUpload() {
	if w.upload != nil && !w.upload.Ended() {
		_ = w.control.SetReadDeadline(time.Now())
	}
}

// lingers is how long the rest of a body is read behind the last answer of a
// connection: to close one with something unread in it takes the answer back (RFC
// 9112, 9.6).
const lingers = 5 * time.Second

// letGo leaves the connection to net/http, which has still to send what it has
// collected, and in HTTP/1 to read the rest of the body: not one that the client holds
// back because it was never asked for it. It lifts these deadlines itself.
func (w *recorder) letGo(r *http.Request, idle time.Duration) {
	w.limit.End()
	begun := w.upload != nil && w.upload.Limit.End()
	if w.hijacked != nil {
		return
	}
	w.joinHead()
	now := time.Now()
	_ = w.control.SetWriteDeadline(now.Add(idle + w.limit.Idle())) // it may wait for the body first
	switch {
	case !w.http1:
	case r.ContentLength == 0 || w.upload != nil && w.upload.Ended():
	case !begun && hasToken(r.Header["Expect"], "100-continue"):
		_ = w.control.SetReadDeadline(now)
	case w.last: // a moment for those who send all before they read
		_ = w.control.SetReadDeadline(now.Add(lingers))
	default:
		_ = w.control.SetReadDeadline(now.Add(idle))
	}
}

// Hijack hands out the connection, which is closed when the exchange ends:
// goproxy leaves it open.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.presence != nil {
		w.presence.handOver()
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
