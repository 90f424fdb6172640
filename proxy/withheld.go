package proxy

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds on what is read of a response that is not passed on, so that its connection can be used again.
const (
	maxWithheld  = 64 << 10 // bytes
	withheldTime = 100 * time.Millisecond
)

// inPlaceOf returns the answer with the problem that is sent in place of resp. Nothing of resp is passed on.
// page is its body: it is closed at once, or when the answer has been sent.
func (p *problem) inPlaceOf(resp *http.Response, page *stream, r *http.Request, x *exchange) *http.Response {
	if resp.ProtoMajor > 1 || resp.ContentLength > maxWithheld {
		page.Close() // resets an HTTP/2 stream, and closes an HTTP/1 connection
		return p.response(r, x)
	}
	answer := p.response(r, x)
	answer.Body = &withheldBody{ReadCloser: answer.Body, page: page, out: x.out}
	return answer
}

// A withheldBody is the body of an answer in place of a response. Close also reads the rest of the
// response, within maxWithheld and withheldTime, and closes its body.
type withheldBody struct {
	io.ReadCloser
	page  *stream
	out   *recorder
	ended sync.Once
}

// Close may be called twice.
func (b *withheldBody) Close() error {
	b.ended.Do(func() {
		b.out.Flush() // the client does not wait for the rest of the response
		b.out.dropUpload()
		timer := time.AfterFunc(withheldTime, func() { b.page.Close() })
		defer timer.Stop()
		_, _ = io.CopyN(io.Discard, b.page.body, maxWithheld+1)
		b.page.Close()
	})
	return nil
}
