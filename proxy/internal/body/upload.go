package body

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// An Upload is a request's body on its way to the origin.
//
// After the last byte of a body of known length, Read returns io.EOF even if the body has been
// closed meanwhile: net/http closes a request's body when the response begins, and Transport may
// still read to see whether there is more. If that failed with http.ErrBodyReadAfterClose,
// Transport would give up the response. Full duplex is no remedy: with it the rest of a body is
// read as a request (golang/go#68560).
type Upload struct {
	io.ReadCloser
	Limit   IdleTimer // bounds how long one Read waits for the client
	Proceed func()    // called before the first Read; may be nil
	left    int64     // bytes to come; negative: unknown

	end    atomic.Pointer[error] // io.EOF: all of it has been read; another error: with which it broke off
	closed atomic.Bool           // by the gate: what Read returns from then on says nothing about the client
}

// NewUpload returns the body of r, from which each piece must arrive within idle.
func NewUpload(r *http.Request, control *http.ResponseController, idle time.Duration) *Upload {
	u := &Upload{ReadCloser: r.Body, left: r.ContentLength}
	u.Limit.Init(idle, func() { _ = control.SetReadDeadline(time.Now()) })
	return u
}

func (u *Upload) Read(p []byte) (int, error) {
	if u.left == 0 {
		return 0, io.EOF
	}
	if u.left > 0 {
		p = p[:min(int64(len(p)), u.left)]
	}
	if u.Proceed != nil {
		u.Proceed()
		u.Proceed = nil
	}
	u.Limit.Start()
	n, err := u.ReadCloser.Read(p)
	u.Limit.Pause()
	if u.left > 0 {
		u.left -= int64(n)
	}
	switch {
	case err == io.EOF, u.left == 0:
		u.end.Store(&io.EOF)
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose) && !u.closed.Load():
		u.end.Store(new(err))
	}
	return n, err
}

// Close closes the body. Transport calls it when a request has failed, perhaps during a Read.
func (u *Upload) Close() error {
	u.closed.Store(true)
	return u.ReadCloser.Close()
}

// Err returns the error with which the client broke the upload off, nil if it did not.
func (u *Upload) Err() error {
	if end := u.end.Load(); end != nil && *end != io.EOF {
		return *end
	}
	return nil
}

// Ended reports whether all of the body has been read.
func (u *Upload) Ended() bool {
	end := u.end.Load()
	return end != nil && *end == io.EOF
}
