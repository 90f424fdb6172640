package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"
)

// headBuffer is more than net/http collects before it sends a response's head.
const headBuffer = 4 << 10

// A recorder passes a response on to the client and takes down what it was. It
// has no ReadFrom on purpose: io.Copy would use it, at the cost of one more
// write for every small body.
type recorder struct {
	http.ResponseWriter
	control  *http.ResponseController
	idle     time.Duration // how long the client may leave unread what is written
	since    time.Time     // when it was last given that time
	upload   *upload       // nil if the request has no body, or none for the origin
	open     *openConns
	hijacked net.Conn
	last     bool // the connection ends with this answer
	wrote    bool
	status   int
	bytes    int64
}

func (p *Proxy) newRecorder(w http.ResponseWriter) *recorder {
	return &recorder{ResponseWriter: w, control: http.NewResponseController(w), idle: p.Limits.IdleTimeout, open: &p.open}
}

// patient gives the client time to read what is written next.
func (w *recorder) patient() {
	if now := time.Now(); now.Sub(w.since) > w.idle/4 {
		w.since = now
		_ = w.control.SetWriteDeadline(now.Add(w.idle))
	}
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	w.patient()
	if !w.wrote && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.wrote, w.status = true, status
		if h := w.Header(); len(h["Content-Type"]) == 0 {
			h["Content-Type"] = nil // keeps net/http from guessing one
		}
		if w.last {
			w.Header()["Connection"] = []string{"close"}
		}
		if status == http.StatusSwitchingProtocols {
			w.Header()["Connection"], w.Header()["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	w.patient()
	n, err := w.ResponseWriter.Write(p)
	if w.bytes += int64(n); w.bytes > headBuffer {
		w.began()
	}
	return n, err
}

// Flush sends what is buffered.
func (w *recorder) Flush() {
	w.patient()
	_ = w.control.Flush() // a client that has left is noticed elsewhere
	w.began()
}

// began lifts the deadline of an upload that the origin has answered before its end.
// By now net/http has thrown the rest away, and looks with the same deadline whether
// the client leaves.
func (w *recorder) began() {
	if w.upload != nil {
		w.upload.patience.end()
	}
}

// letGo leaves the connection to net/http, which will wait for the rest of the
// body: not for one that the client holds back because it was never asked for it.
func (w *recorder) letGo(r *http.Request) {
	begun := false
	if w.upload != nil {
		begun = w.upload.patience.stop()
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 && !begun && hasToken(r.Header["Expect"], "100-continue") {
		_ = w.control.SetReadDeadline(time.Now())
	}
}

// Hijack hands out the connection, which is closed when the exchange ends:
// goproxy leaves it open.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
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
