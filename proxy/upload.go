package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// An upload is a request's body on its way to the origin.
//
// One of known length ends where it should, even if it has been closed meanwhile:
// net/http closes a request's body when the response begins, while Transport may
// just be looking whether there is more of it, and would give up the response if it
// could not (ErrBodyReadAfterClose). Full duplex is no way out: then rests of bodies
// are read as requests (golang/go#68560).
type upload struct {
	io.ReadCloser
	patience readPatience
	left     int64 // bytes that are to come; negative if that is not known

	mu  sync.Mutex
	err error // with which it broke off
}

func newUpload(r *http.Request, control *http.ResponseController, idle time.Duration) *upload {
	return &upload{ReadCloser: r.Body, left: r.ContentLength, patience: readPatience{control: control, idle: idle}}
}

func (u *upload) Read(p []byte) (int, error) {
	if u.left == 0 {
		return 0, io.EOF
	}
	if u.left > 0 {
		p = p[:min(int64(len(p)), u.left)]
	}
	u.patience.begin()
	n, err := u.ReadCloser.Read(p)
	if u.left > 0 {
		u.left -= int64(n)
	}
	switch {
	case err == io.EOF || u.left == 0:
		u.patience.end()
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		u.mu.Lock()
		u.err = err
		u.mu.Unlock()
	}
	return n, err
}

// broke returns the error with which the client's side of the upload ended, nil
// if it did not.
func (u *upload) broke() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// A readPatience is how long a client may be silent in the middle of a body. The
// deadline is that of the whole connection in HTTP/1, where net/http reads on behind
// the body to see whether the client leaves: so it is lifted as soon as it does.
//
// Transport may still be reading when the exchange is over; by then the connection
// is not ours any more.
type readPatience struct {
	control *http.ResponseController
	idle    time.Duration

	mu    sync.Mutex
	set   time.Time // when the deadline was last moved; zero: there is none
	begun bool
	over  bool
}

// begin gives the client time for what is read next.
func (d *readPatience) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = true
	if now := time.Now(); !d.over && now.Sub(d.set) > d.idle/4 {
		d.set = now
		_ = d.control.SetReadDeadline(now.Add(d.idle))
	}
}

// end lifts the deadline: the body has been read, or nobody needs it any more.
func (d *readPatience) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over && !d.set.IsZero() {
		d.set = time.Time{}
		_ = d.control.SetReadDeadline(time.Time{})
	}
}

// stop ends the patience, and leaves the deadline to net/http. It reports whether
// any of the body was asked for.
func (d *readPatience) stop() (begun bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	return d.begun
}
