package proxytest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"robotsgate/internal/gatetest"
)

// Patience bounds every wait for something that should come at once.
const Patience = 10 * time.Second

// Receive waits for what a channel brings.
func Receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// Eventually waits for a condition.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	gatetest.Becomes(t, Patience, what, holds)
}

// WantClosed fails unless the gate ends the connection, saying no more than that
// the request was bad.
func WantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(Patience))
	rest, err := io.ReadAll(conn)
	if code := StatusOf(string(rest)); code != "" && code != "400" || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is not closed: read %q, %v", rest, err)
	}
}

// StatusOf returns the status of an answer in HTTP/1; "" if it is none.
func StatusOf(answer string) string {
	line, _, _ := strings.Cut(answer, "\r\n")
	_, status, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(status, " ")
	return code
}

// Host returns the host and port of an origin's URL.
func Host(rawURL string) string {
	return strings.TrimPrefix(strings.TrimPrefix(rawURL, "https://"), "http://")
}

// WantStatus fails unless a response has a status.
func WantStatus(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		t.Errorf("status: got %d, want %d", resp.StatusCode, want)
	}
}

// WantHeader fails unless a header begins with want; "" wants none.
func WantHeader(t *testing.T, resp *http.Response, name, want string) {
	t.Helper()
	got := strings.Join(resp.Header.Values(name), " | ")
	if want == "" && got != "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

// WantArrived fails unless these requests reached the origins, in this order.
func WantArrived(t *testing.T, g *Gate, want ...string) {
	t.Helper()
	if got := g.Arrived(); !slices.Equal(got, want) {
		t.Errorf("reached the origin: %q, want %q", got, want)
	}
}

// IsTimeout reports whether a deadline has passed.
func IsTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// WantFields fails unless all that the gate has added can be read as structured
// fields.
func WantFields(t *testing.T, resp *http.Response) {
	t.Helper()
	for _, name := range []string{"Robots-Gate-Decision", "Robots-Gate-Source", "Robots-Gate-Meta", "Robots-Gate-Delay", "Robots-Gate-Id"} {
		if lines := resp.Header[name]; len(lines) > 0 {
			if _, err := httpsfv.UnmarshalItem(lines); err != nil {
				t.Errorf("%s: %q: %v", name, lines, err)
			}
		}
	}
	for _, name := range []string{"Robots-Gate-Tags", "Proxy-Status"} {
		if lines := resp.Header[name]; len(lines) > 0 {
			if _, err := httpsfv.UnmarshalList(lines); err != nil {
				t.Errorf("%s: %q: %v", name, lines, err)
			}
		}
	}
}
