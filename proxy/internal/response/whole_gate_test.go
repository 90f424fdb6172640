package response_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/proxy/internal/proxytest"
)

// TestJoinedAnswers: responses of every length arrive whole, one after the other on one connection.
func TestJoinedAnswers(t *testing.T) {
	body := func(n int) string { return strings.Repeat("0123456789", n/10+1)[:n] }
	lengths := map[string]int{"/0": 0, "/2047": 2047, "/2048": 2048, "/3500": 3500, "/3900": 3900, "/4000": 4000, "/4096": 4096, "/5000": 5000, "/34000": 34000, "/49152": 49152, "/200000": 200000}
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		text := body(lengths[r.URL.Path])
		if r.URL.RawQuery == "chunked" {
			rw.(http.Flusher).Flush()
		}
		io.WriteString(rw, text)
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		for path, n := range lengths {
			for _, query := range []string{"", "?chunked"} {
				if resp, got := v.Get(t, path+query); resp.StatusCode != http.StatusOK || got != body(n) {
					t.Errorf("%s: %d, %d bytes", path+query, resp.StatusCode, len(got))
				}
				if x := g.Next(t); x.Bytes != int64(n) {
					t.Errorf("%s: the record says %d bytes", path+query, x.Bytes)
				}
			}
		}
	})
}

// TestHeadBeforeClosedWindow: a client with a closed HTTP/2 window gets the head of a response.
func TestHeadBeforeClosedWindow(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, path := range []string{"/small", "/private/x"} {
		conn, f := g.Frames(t, path, 0)
		conn.SetReadDeadline(time.Now().Add(proxytest.Patience))
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("%s: no head came: %v", path, err)
			}
			if frame.Header().Type == http2.FrameHeaders {
				break
			}
		}
	}
}

// TestJoinedStreams: responses that share a connection arrive whole, also beside one that does not end.
func TestJoinedStreams(t *testing.T) {
	end := make(chan bool)
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if n < 0 {
			io.WriteString(rw, "begun")
			rw.(http.Flusher).Flush()
			<-end
			return
		}
		io.WriteString(rw, strings.Repeat("x", n))
	}})
	client := g.Client()
	open, err := client.Get(g.HTTPS + "/?n=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Body.Close()
	var all sync.WaitGroup
	for i := range 90 { // g.Done holds a hundred
		n := i * i * 5 % 9001
		all.Go(func() {
			if _, got := proxytest.Send(t, client, http.MethodGet, fmt.Sprint(g.HTTPS, "/?n=", n), nil); len(got) != n {
				t.Errorf("got %d bytes, want %d", len(got), n)
			}
		})
	}
	all.Wait()
	close(end)
	if got, err := io.ReadAll(open.Body); string(got) != "begun" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
