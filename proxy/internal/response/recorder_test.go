package response

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"robotsgate/proxy/internal/client"
)

// A boundWriter takes down the deadlines that there were when it was written to.
type boundWriter struct {
	*httptest.ResponseRecorder
	write  time.Time
	during []time.Time
}

func (b *boundWriter) SetReadDeadline(time.Time) error    { return nil }
func (b *boundWriter) SetWriteDeadline(t time.Time) error { b.write = t; return nil }

func (b *boundWriter) WriteHeader(status int) {
	b.during = append(b.during, b.write)
	b.ResponseRecorder.WriteHeader(status)
}

func (b *boundWriter) Write(p []byte) (int, error) {
	b.during = append(b.during, b.write)
	return b.ResponseRecorder.Write(p)
}

func (b *boundWriter) Flush() { b.during = append(b.during, b.write) }

// A write is bounded, and what comes behind it isn't: an event stream may be silent.
func TestDeadlineIsLifted(t *testing.T) {
	b := &boundWriter{ResponseRecorder: httptest.NewRecorder()}
	var w Recorder
	w.Begin(b, Request{Conn: &client.Conn{}, HTTP1: true}, &client.OpenConns{}, 0)
	w.limit.Init(time.Hour, w.breakOff)
	for name, write := range map[string]func(){
		"write": func() { io.WriteString(&w, "x") },
		"flush": func() { w.Flush() },
		"103":   func() { w.WriteHeader(http.StatusEarlyHints) },
	} {
		w.Wrote, b.during = name == "write", nil
		write()
		if len(b.during) != 1 || time.Until(b.during[0]) < time.Minute {
			t.Errorf("%s: bounded by %v", name, b.during)
		}
		if !b.write.IsZero() {
			t.Errorf("%s: the deadline stays", name)
		}
	}
}
