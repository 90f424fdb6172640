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
		for range map[string]int{"/": 2, "/endless": 1000}[r.URL.Path] {
			rw.Header().Set("Link", "</style.css>; rel=preload")
			rw.Header().Set("Robots-Gate-Decision", "forged")
			rw.WriteHeader(http.StatusEarlyHints)
		}
		clear(rw.Header())
		fmt.Fprint(rw, "answer")
	}})
	w.ways(t, func(t *testing.T, v way) {
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
		if want := "103 map[Link:[</style.css>; rel=preload]]"; !slices.Equal(got, []string{want, want}) {
			t.Errorf("got %q", got)
		}
		wantStatus(t, resp, 200)
		wantHeader(t, resp, "Link", "")
		wantHeader(t, resp, headerDecision, "allow;reason=no-match")
		resp, _ = v.get(t, "/endless")
		wantStatus(t, resp, 502)
	})
	answer := w.raw("GET " + w.http + "/ HTTP/1.0\r\n\r\n")
	if strings.Contains(answer, "103") || statusOf(answer) != "200" {
		t.Errorf("HTTP/1.0: %s", answer)
	}
}
