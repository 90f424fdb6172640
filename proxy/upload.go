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
	control *http.ResponseController
	limit   timeLimit
	proceed func() // called before the first Read; may be nil
	left    int64  // bytes that are to come; negative if that is not known

	mu    sync.Mutex
	err   error // with which it broke off
	whole bool  // it has come to its end
}

func newUpload(r *http.Request, control *http.ResponseController, idle time.Duration) *upload {
	u := &upload{ReadCloser: r.Body, left: r.ContentLength, control: control}
	u.limit.idle, u.limit.end = idle, u
	return u
}

func (u *upload) breakOff() { _ = u.control.SetReadDeadline(time.Now()) }

func (u *upload) Read(p []byte) (int, error) {
	if u.left == 0 {
		return 0, io.EOF
	}
	if u.left > 0 {
		p = p[:min(int64(len(p)), u.left)]
	}
	if u.proceed != nil {
		u.proceed()
		u.proceed = nil
	}
	u.limit.begin()
	n, err := u.ReadCloser.Read(p)
	u.limit.done()
	if u.left > 0 {
		u.left -= int64(n)
	}
	if ended := err == io.EOF || u.left == 0; ended || err != nil && !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.whole = ended; !ended {
			u.err = err
		}
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

// ended reports whether all of the body has been read.
func (u *upload) ended() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.whole
}
