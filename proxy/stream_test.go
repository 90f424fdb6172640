package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy/internal/response"
)

// When a client leaves, its request is given up at the origin too.
func TestClientLeaves(t *testing.T) {
	f := newInFlight()
	w := newWorld(t, options{handler: f.ServeHTTP})
	w.ways(t, func(t *testing.T, v way) {
		for _, path := range []string{"/before the response", "/half"} {
			ctx, leave := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.origin+strings.ReplaceAll(path, " ", "-"), nil)
			left := make(chan time.Time, 1)
			go func() {
				receive(t, f.arrived, "the request")
				left <- time.Now()
				leave()
			}()
			if resp, err := v.client.Do(req); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			receive(t, f.gone, "the end at the origin")
			if took := time.Since(receive(t, left, "the client's leave")); took > time.Second {
				t.Errorf("%s: the origin was told after %v", path, took)
			}
			if x := w.next(t); x.Error == "" {
				t.Errorf("%s: the record has no error: %+v", path, x)
			}
		}
	})
}

// The head of a response is passed on though its body has not begun: clients
// wait for it, as those of event streams do.
func TestHeadBeforeBody(t *testing.T) {
	release := make(chan bool)
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Path == "/known" {
			rw.Header().Set("Content-Length", "4")
		}
		rw.(http.Flusher).Flush()
		<-release
		io.WriteString(rw, "late")
	}})
	w.ways(t, func(t *testing.T, v way) {
		for _, path := range []string{"/known", "/unknown"} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.origin+path, nil)
			resp, err := v.client.Do(req)
			release <- true
			if err != nil {
				t.Fatalf("%s: no response without its body: %v", path, err)
			}
			wantStatus(t, resp, 200)
			wantHeader(t, resp, headerDecision, "allow")
			if body, err := io.ReadAll(resp.Body); string(body) != "late" || err != nil {
				t.Errorf("%s: got %q, %v", path, body, err)
			}
			resp.Body.Close()
			cancel()
		}
	})
}

// An origin that answers before it has read all of an upload gets the rest of it.
func TestHeadUnderUpload(t *testing.T) {
	begun := make(chan bool, 1)
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(rw)
		rc.EnableFullDuplex()
		rc.Flush()
		begun <- true
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(rw, n, err)
	}})
	w.ways(t, func(t *testing.T, v way) {
		body, upload := io.Pipe()
		go func() {
			io.WriteString(upload, "one")
			<-begun
			<-time.After(5 * response.HeadDelay) // for the head to be passed on, if it is
			for range 1000 {
				io.WriteString(upload, "more")
			}
			upload.Close()
		}()
		resp, answer := send(t, v.client, http.MethodPost, v.origin+"/", body)
		if resp.StatusCode != 200 || answer != "4003 <nil>" {
			t.Errorf("got %d %q", resp.StatusCode, answer)
		}
	})
}

// A response that breaks off is seen with its head and what has come of it, however
// little that is.
func TestBrokenOffIsSeen(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "100")
		io.WriteString(rw, "the beginning")
		http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}})
	w.ways(t, func(t *testing.T, v way) {
		resp, err := v.client.Get(v.origin + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		wantHeader(t, resp, headerDecision, "allow")
		if body, err := io.ReadAll(resp.Body); string(body) != "the beginning" || err == nil {
			t.Errorf("the client read %q, %v", body, err)
		}
	})
}
