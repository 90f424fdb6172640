package proxy

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"robotsgate/policy"
)

// A testPacer lets the test decide each request's turn.
type testPacer struct {
	waiting chan policy.Request // receives each request when it begins to wait
	turn    chan error          // what Wait returns
}

func newTestPacer() *testPacer {
	return &testPacer{waiting: make(chan policy.Request, 1), turn: make(chan error)}
}

func (p *testPacer) Wait(ctx context.Context, r policy.Request, d *policy.Decision) error {
	if d == nil || d.Denied() {
		return errors.New("only allowed requests may wait")
	}
	p.waiting <- r
	select {
	case err := <-p.turn:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An allowed request waits for its turn before anything is sent, and its wait is recorded.
func TestPacer(t *testing.T) {
	pacer := newTestPacer()
	w := newWorld(t, options{gate: func(o *Options) { o.Settings.Pacer = pacer }})
	w.ways(t, func(t *testing.T, v way) {
		before := len(w.arrived())
		got := make(chan *http.Response, 1)
		go func() {
			resp, err := v.client.Get(v.origin + "/page")
			if err != nil {
				t.Error(err)
			}
			got <- resp
		}()
		if r := receive(t, pacer.waiting, "the request's wait"); r.Target.String() != v.origin+"/page" || r.Crawler.Name != "default" {
			t.Errorf("waiting: %v for %q", r.Target, r.Crawler.Name)
		}
		if n := len(w.arrived()); n != before {
			t.Error("the request was sent before its turn")
		}
		pacer.turn <- nil
		resp := receive(t, got, "the response")
		resp.Body.Close()
		wantStatus(t, resp, 200)
		if x := w.next(t); x.Waited <= 0 || x.Sent < x.Decided+x.Waited {
			t.Errorf("record: decided after %v, waited %v, sent after %v", x.Decided, x.Waited, x.Sent)
		}
	})
}

// A passthrough tunnel waits for its turn too.
func TestPacerHoldsTunnel(t *testing.T) {
	pacer := newTestPacer()
	w := newWorld(t, options{robots: "# nothing\n", gate: func(o *Options) { unseen(o); o.Settings.Pacer = pacer }})
	got := make(chan *http.Response, 1)
	go func() {
		_, resp := w.connectTo(t, host(w.https), "User-Agent: ExampleBot/1.0", "")
		got <- resp
	}()
	receive(t, pacer.waiting, "the tunnel's wait")
	select {
	case resp := <-got:
		t.Fatalf("answered %d before its turn", resp.StatusCode)
	default:
	}
	pacer.turn <- nil
	wantStatus(t, receive(t, got, "the answer to CONNECT"), 200)
}

// An error refuses the request; TooSoon says when to try again.
func TestPacerRefuses(t *testing.T) {
	pacer := newTestPacer()
	w := newWorld(t, options{gate: func(o *Options) { o.Settings.Pacer = pacer }})
	for _, c := range []struct {
		err    error
		status int
		retry  string
	}{
		{&TooSoon{Retry: 2500 * time.Millisecond}, http.StatusTooManyRequests, "3"},
		{errors.New("out of order"), http.StatusBadGateway, ""},
	} {
		go func() {
			<-pacer.waiting
			pacer.turn <- c.err
		}()
		resp, _ := w.get(w.http + "/page")
		wantStatus(t, resp, c.status)
		wantHeader(t, resp, headerDecision, "allow;")
		if got := resp.Header.Get("Retry-After"); got != c.retry {
			t.Errorf("%v: Retry-After is %q, want %q", c.err, got, c.retry)
		}
		if x := w.next(t); x.Error != c.err.Error() {
			t.Errorf("%v: the record's error is %q", c.err, x.Error)
		}
	}
	wantArrived(t, w)
}

// A client that disconnects gives its place up.
func TestPacerClientLeaves(t *testing.T) {
	pacer := newTestPacer()
	w := newWorld(t, options{gate: func(o *Options) { o.Settings.Pacer = pacer }})
	conn := w.dial()
	conn.Write([]byte("GET " + w.http + "/page HTTP/1.1\r\nHost: x\r\n\r\n"))
	receive(t, pacer.waiting, "the request's wait")
	conn.Close()
	if x := w.next(t); x.Sent != 0 || x.Error == "" {
		t.Errorf("record: sent after %v, error %q", x.Sent, x.Error)
	}
	wantArrived(t, w)
}

// What the gate answers itself does not wait.
func TestPacerLeavesOwnAnswersAlone(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Settings.Pacer = newTestPacer() }})
	for path, status := range map[string]int{"/robots.txt": 200, "/private/": 403} {
		resp, _ := w.get(w.http + path)
		wantStatus(t, resp, status)
	}
}
