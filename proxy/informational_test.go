package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// 1xx responses of an origin are passed on without the headers that only the gate may set. Too
// many end the request.
func TestInformational(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Link", "</style.css>; rel=preload")
		rw.Header().Set("Robots-Gate-Decision", "forged")
		rw.Header().Set("Alt-Svc", `h3=":443"`)
		for range map[string]int{"/": 2, "/endless": 1000}[r.URL.Path] {
			rw.WriteHeader(http.StatusEarlyHints)
		}
		if r.URL.Path == "/endless" {
			return
		}
		clear(rw.Header())
		fmt.Fprint(rw, "answer")
	}})
	w.ways(t, func(t *testing.T, v way) {
		h2 := strings.Contains(v.name, "HTTP/2")
		var got []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, fmt.Sprint(code, h))
			return nil
		}}
		req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.WithoutCancel(t.Context()), trace), http.MethodGet, v.origin+"/", nil)
		resp, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		hint := "103 map[Link:[</style.css>; rel=preload]]"
		want := []string{hint, hint}
		if h2 {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		wantStatus(t, resp, 200)
		wantHeader(t, resp, "Link", "")
		wantHeader(t, resp, headerDecision, "allow;reason=no-match")
		if !h2 {
			resp, _ = v.get(t, "/endless")
			wantStatus(t, resp, 502)
		}
	})
}

// A client that waits for 100 Continue gets it as a whole response among the origin's 1xx
// responses, although another goroutine writes those.
func TestContinueAmongHints(t *testing.T) {
	o := gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(_ int, conn net.Conn, r *http.Request) bool {
		io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"+strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 12))
		io.Copy(io.Discard, r.Body)
		io.WriteString(conn, gatetest.NotFound)
		return true
	}))
	w := newWorld(t, options{})
	for range 100 {
		conn := w.dial()
		conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "POST http://%s/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", o.Host)
		r, codes := bufio.NewReader(conn), map[int]int{}
		for codes[404] == 0 {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("after %v: %v", codes, err)
			}
			codes[resp.StatusCode]++
		}
		if conn.Close(); codes[100] != 1 || codes[103] != 12 {
			t.Fatalf("got %v", codes)
		}
	}
}
