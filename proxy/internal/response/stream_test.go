package response

import (
	"net/http"
	"testing"
	"time"
)

// A closer is a body without an end.
type closer struct{ close func() }

func (c closer) Read(p []byte) (int, error) { return len(p), nil }
func (c closer) Close() error               { c.close(); return nil }

// A body is closed once, whoever asks for it: net/http's Transport is broken for good
// by some 260 responses over HTTP/2 that are left with 4 MB unread and closed twice.
func TestClosedOnce(t *testing.T) {
	closes := 0
	body := closer{func() { closes++ }}
	s := NewStream(&Recorder{}, &http.Response{Body: body}, time.Minute)
	for range 3 {
		s.Close()
	}
	if closes != 1 {
		t.Errorf("the origin's body was closed %d times", closes)
	}
}
