package response

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy/internal/client"
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

// pieces is a body that arrives in two pieces.
type pieces struct {
	delay time.Duration // before the second
	read  int
}

func (p *pieces) Read(b []byte) (int, error) {
	switch p.read++; p.read {
	case 1:
		return copy(b, "one"), nil
	case 2:
		time.Sleep(p.delay) // fake clock
		return copy(b, "two"), nil
	}
	return 0, io.EOF
}

func (*pieces) Close() error { return nil }

// writes records what is written to a client.
type writes struct {
	*Recorder
	all   []string
	first time.Time
}

func (w *writes) Write(p []byte) (int, error) {
	if w.all = append(w.all, string(p)); len(w.all) == 1 {
		w.first = time.Now()
	}
	return w.Recorder.Write(p)
}

// What arrives within HeadDelay goes out in one write, and no piece waits longer than that for another.
func TestFirstWrite(t *testing.T) {
	for delay, want := range map[time.Duration][]string{0: {"onetwo"}, HeadDelay / 2: {"onetwo"}, time.Minute: {"one", "two"}} {
		synctest.Test(t, func(t *testing.T) {
			w := &writes{Recorder: &Recorder{}}
			w.Begin(httptest.NewRecorder(), Request{}, &client.OpenConns{}, time.Hour)
			s := NewStream(w.Recorder, &http.Response{Body: &pieces{delay: delay}, ContentLength: -1}, time.Hour)
			begun := time.Now()
			n, err := s.WriteTo(w)
			if n != 6 || err != nil || !slices.Equal(w.all, want) || w.first.Sub(begun) > HeadDelay {
				t.Errorf("%v: got %d, %v, %q after %v, want %q", delay, n, err, w.all, w.first.Sub(begun), want)
			}
		})
	}
}

// A broken body breaks off after its first piece, as Transport's do when the client has left.
type broken struct{ read int }

func (b *broken) Read(p []byte) (int, error) {
	if b.read++; b.read == 1 {
		return copy(p, "one"), nil
	}
	time.Sleep(time.Minute) // fake clock
	return 0, context.Canceled
}

func (*broken) Close() error { return nil }

// A deaf client does not read.
type deaf struct{ *Recorder }

func (w *deaf) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestDeafClient: the record blames the client that does not read, although the body of the origin then breaks off.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deaf{&Recorder{}}
		w.Begin(httptest.NewRecorder(), Request{}, &client.OpenConns{}, time.Hour)
		s := NewStream(w.Recorder, &http.Response{Body: &broken{}, ContentLength: -1}, time.Hour)
		_, err := s.WriteTo(w)
		if !errors.Is(err, os.ErrDeadlineExceeded) || s.Failed != "the client does not read its response" || s.Broke {
			t.Errorf("%q, broke %v", s.Failed, s.Broke)
		}
	})
}
