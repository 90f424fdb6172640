package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"robotsgate/internal/console"
)

// TestUsageReadsAsTheGate: usage reads the page of those responses of which the gate does.
func TestUsageReadsAsTheGate(t *testing.T) {
	for _, c := range []struct {
		types []string // Content-Type
		want  string
	}{
		{[]string{"text/html"}, `{"usage":{"train-ai":"n"},`},
		{[]string{"text/plain", "text/html"}, `{"usage":{"train-ai":"n"},`},
		{[]string{"text/plain"}, `"skipped":"type"}`},
		{nil, `"skipped":"type"}`},
	} {
		origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/page" {
				http.NotFound(rw, r)
				return
			}
			rw.Header()["Content-Type"] = c.types
			io.WriteString(rw, `<meta name="robots" content="noai">`)
		}))
		var out bytes.Buffer
		err := (&Usage{JSON: true, URL: origin.URL + "/page"}).Run(t.Context(), console.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard})
		if err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: got %s, %v, want %s", c.types, out.String(), err, c.want)
		}
		origin.Close()
	}
}
