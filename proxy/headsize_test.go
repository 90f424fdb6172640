package proxy

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// manyFields returns as many fields, each on a line.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("x" + strconv.Itoa(i) + ":\r\n")
	}
	return b.String()
}

// A head of many short fields, which take far more memory than bytes, ends the response; so does a longer head than there
// is memory for, before its end.
func TestHeadOfManyFields(t *testing.T) {
	heads := map[string]string{
		"/many": manyFields(1000) + "\r\n", "/too-many": manyFields(4096), "/unfinished": manyFields(200),
	}
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n"+heads[r.URL.Path])
		io.Copy(io.Discard, conn) // until the gate closes it
	}})
	client := w.clientVia("http", w.addr, false)
	resp, _ := send(t, client, http.MethodGet, w.http+"/many", nil)
	wantStatus(t, resp, http.StatusOK)
	resp, _ = send(t, client, http.MethodGet, w.http+"/too-many", nil)
	wantStatus(t, resp, http.StatusBadGateway)
	exhaust(&w.gate.memory)
	resp, _ = send(t, client, http.MethodGet, w.http+"/unfinished", nil)
	wantStatus(t, resp, http.StatusServiceUnavailable)
}
