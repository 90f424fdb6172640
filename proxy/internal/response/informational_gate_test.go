package response_test

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
	"robotsgate/proxy/internal/proxytest"
)

// 1xx responses of an origin are passed on without the headers that only the gate may set. Too
// many end the request.
func TestInformational(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
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
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		h2 := strings.Contains(v.Name, "HTTP/2")
		var got []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, fmt.Sprint(code, h))
			return nil
		}}
		req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.WithoutCancel(t.Context()), trace), http.MethodGet, v.Origin+"/", nil)
		resp, err := v.Client.Do(req)
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
		proxytest.WantStatus(t, resp, 200)
		proxytest.WantHeader(t, resp, "Link", "")
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=no-match")
		if !h2 {
			resp, _ = v.Get(t, "/endless")
			proxytest.WantStatus(t, resp, 502)
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
	g := proxytest.Start(t, proxytest.Options{})
	for range 100 {
		conn := g.Dial()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
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
