package body

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// What Read returns after Transport has closed an upload, or while it does so, is not an error of the client. Over HTTP/2
// net/http returns another error than http.ErrBodyReadAfterClose.
func TestUploadClosedDuringRead(t *testing.T) {
	broken := errors.New("body closed by handler")
	for _, closed := range []bool{false, true} {
		from, to := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, "http://a.example/", from)
		u := NewUpload(r, http.NewResponseController(httptest.NewRecorder()), time.Hour)
		if closed {
			u.Close()
		}
		to.CloseWithError(broken)
		u.Read(make([]byte, 1))
		if got := u.Err(); (got == nil) != closed {
			t.Errorf("closed %v: got the error %v of the client", closed, got)
		}
	}
}
