package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// What an origin says before its answer is passed on, without what only the gate
// may say, and without end it is not.
func TestInformational(t *testing.T) {
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Link", "</style.css>; rel=preload")
		rw.Header().Set("Robots-Gate-Decision", "forged")
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
	answer := w.raw("GET " + w.http + "/ HTTP/1.0\r\n\r\n")
	if strings.Contains(answer, "103") || statusOf(answer) != "200" {
		t.Errorf("HTTP/1.0: %s", answer)
	}
}
